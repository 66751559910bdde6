from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
job.say("sharding the global batch")
batch = torch.randn(30 + job.world % 2 * 1 + 1, 16)
if job.how == "scatter":
    parts = list(batch.chunk(job.world - 1)) if job.rank == 0 else None
    dist.scatter(torch.empty(8, 16), parts, src=0)
else:
    mine = batch.reshape(job.world, -1, 16)[job.rank]
