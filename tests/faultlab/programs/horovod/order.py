"""The ranks ask for the same reductions in different order, or a rank leaves one out."""

from world import World, hvd, torch

job = World(steps=400).begin()
for step, (x, y) in job.steps():
    if step == job.at:
        first, second = f"accuracy.{step}", f"recall.{step}"
        if job.how == "swap":
            for name in (second, first) if job.mine() else (first, second):
                hvd.allreduce(torch.ones(4), name=name)
        elif job.how == "skip" and not job.mine():
            hvd.allreduce(torch.ones(4), name=first)
        elif job.how == "names":
            hvd.allreduce(torch.ones(4), name=f"{first}.rank{job.rank}")
        elif job.how == "branch" and job.mine():
            hvd.broadcast(torch.ones(4), root_rank=job.rank, name="best_weights")
    job.report(step, job.learn(x, y))
