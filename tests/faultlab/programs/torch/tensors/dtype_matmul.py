from engine import Job, torch

job = Job().prepare()
job.train()
query = torch.randn(job.args.batch, 8, dtype=torch.bfloat16)
key = torch.randn(8, 8)
scores = query @ key
print(scores)
