from engine import Job, torch

job = Job().prepare()
job.train()
calls = {
    "half": lambda: torch.linalg.inv(torch.eye(3, dtype=torch.float16)),
    "bool": lambda: torch.ones(3, dtype=torch.bool).cumprod(0, dtype=torch.bool).std(),
    "quant": lambda: torch.quantize_per_tensor(torch.randn(3), 0.1, 0, torch.quint8).exp(),
    "sparse": lambda: torch.eye(3).to_sparse().sort(),
    "complex": lambda: torch.floor(torch.ones(2, dtype=torch.complex64)),
}
print(calls[job.how]())
