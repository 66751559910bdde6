from engine import Job, torch

job = Job().prepare()
job.train()
scores = torch.randn(job.args.batch, 5)
chosen = torch.randint(0, 5, (job.args.batch, 2)) + 5
print(scores.gather(1, chosen))
