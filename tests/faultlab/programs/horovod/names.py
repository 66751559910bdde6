"""A name is handed in twice before the first is done, since the others are late; a handle is asked for that is nobody's."""

import time

from world import World, hvd, torch

job = World(steps=80).begin()
for step, (x, y) in job.steps():
    if step == job.at:
        reduce = hvd.allgather_async if job.how == "gather" else hvd.allreduce_async
        if job.how == "handle":
            hvd.poll(987654)
        elif not job.mine():
            time.sleep(4)
        handles = [reduce(torch.ones(2_000) * n, name="statistics") for n in range(1 + job.mine())]
        for handle in handles:
            hvd.synchronize(handle)
    job.report(step, job.learn(x, y))
