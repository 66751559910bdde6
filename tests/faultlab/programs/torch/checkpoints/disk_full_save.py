import os

from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step % 5 == 4:
        torch.save({"model": job.model.state_dict(), "pad": torch.randn(40_000)}, f"ckpt/step_{step}.pt")
        job.say(f"saved step {step}")
