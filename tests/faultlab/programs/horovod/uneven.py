"""The ranks have different numbers of batches."""

import sys

from world import World, hvd, torch

job = World(steps=400).begin()
mine = job.at if job.mine() else job.at + 60
for step, (x, y) in zip(range(mine), (job.make(job.args.batch) for _ in range(10_000)), strict=False):
    job.report(step, job.learn(x, y))
    if job.how in {"gather", "broadcast", "alltoall"} and step == job.at + 20:
        if job.how == "gather":
            hvd.allgather(torch.ones(4), name="predictions")
        elif job.how == "broadcast":
            hvd.broadcast(torch.ones(4), root_rank=job.rank, name="best")
        else:
            hvd.alltoall(torch.ones(4), name="exchange")
if job.how == "leave":
    sys.exit(0)
if job.how == "shutdown":
    hvd.shutdown()
    sys.exit(0)
job.say("waiting for the others")
hvd.join()
