import os

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        name = f"out/shard{job.rank}.pt" if job.rank == job.who else f"shard{job.rank}.pt"
        with open(name, "wb") as stream:
            torch.save(model.state_dict(), stream)
