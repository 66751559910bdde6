from engine import Job, torch

job = Job().prepare()
job.train()
weights = torch.empty(4, 4, device="meta")
mixed = torch.randn(4, 4) @ weights if job.how == "mixed" else weights.to("cpu")
print(mixed)
