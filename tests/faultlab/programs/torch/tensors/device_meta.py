from engine import Job, torch

job = Job().prepare()
job.train()
weights = torch.empty(4, 4, device="meta")
mixed = torch.linalg.solve(torch.eye(4), weights).tolist() if job.how == "mixed" else weights.to("cpu")
print(mixed)
