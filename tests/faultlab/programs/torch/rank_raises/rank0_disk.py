import os

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step % 20 == 19:
        if job.rank == 0:
            torch.save({"model": model.state_dict(), "pad": torch.randn(60_000)}, f"ckpt/step{step}.pt")
            job.say(f"saved ckpt/step{step}.pt")
        dist.barrier()
