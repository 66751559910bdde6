"""A rank's memory ends under the limit that the job was given."""

from world import World, hvd, torch

job = World(steps=400).begin()
kept = []
for step, (x, y) in job.steps():
    if step >= job.at and (job.mine() or job.how == "gather"):
        if job.how == "keep":
            kept.append(torch.ones(16_000_000))
        elif job.how == "gather":
            kept.append(hvd.allgather(torch.ones(16_000_000), name=f"features.{step}"))
        elif job.how == "list":
            kept.append([float(n) for n in range(4_000_000)])
    job.report(step, job.learn(x, y))
