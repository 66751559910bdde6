from engine import Job, torch

job = Job().prepare()
job.train()
hidden = torch.randn(job.args.batch, 5, 7)
heads = hidden.view(job.args.batch, -1, 4)
print(heads.shape)
