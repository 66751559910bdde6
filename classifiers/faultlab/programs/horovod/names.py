"""A name is handed in twice before the first is done; a handle is waited for twice."""

from world import World, hvd, torch

job = World(steps=80).begin()
for step, (x, y) in job.steps():
    if step == job.at:
        if job.how == "twice":
            handles = [hvd.allreduce_async(torch.ones(2_000_000) * n, name="statistics") for n in range(4)]
            for handle in handles:
                hvd.synchronize(handle)
        elif job.how == "gather":
            handles = [hvd.allgather_async(torch.ones(200_000) * n, name="embeddings") for n in range(4)]
            for handle in handles:
                hvd.synchronize(handle)
        elif job.how == "handle":
            hvd.poll(987654)
    job.report(step, job.learn(x, y))
