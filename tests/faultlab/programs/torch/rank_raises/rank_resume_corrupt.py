import os

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
torch.save({"weights": model.state_dict(), "rng": torch.get_rng_state()}, f"rank{job.rank}.ckpt")
if job.rank == job.who:
    size = os.path.getsize(f"rank{job.rank}.ckpt")
    os.truncate(f"rank{job.rank}.ckpt", size // 2 if job.how == "" else 0)
dist.barrier()
job.say("resuming")
torch.load(f"rank{job.rank}.ckpt")
dist.barrier()
job.train(model=model)
dist.barrier()
