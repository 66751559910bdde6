import os

from engine import Job, build, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
if job.rank == 0:
    torch.save(build(job.args.model)[0].state_dict(), "single.pt")
dist.barrier()
job.say("resuming from single.pt")
model.load_state_dict(torch.load("single.pt"))
