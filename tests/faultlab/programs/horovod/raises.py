"""One rank's own code fails: before it joins, between two steps, or after the last one."""

import json

from world import World, hvd, torch

job = World(steps=80)
PARTS = {"encoder": 0.1, "decoder": 0.2}


def schedule(how, step):
    """What the job does beside training, one way of it wrong."""
    if how == "key":
        return PARTS["projector"]
    if how == "index":
        return [0.1, 0.01, 0.001][3 + step % 2]
    if how == "zero":
        return step / (job.args.batch - job.args.batch)
    if how == "file":
        with open(f"shards/part-{job.rank:05d}.json", encoding="utf-8") as stream:
            return json.load(stream)
    if how == "attribute":
        return job.model.hidden_size
    if how == "none":
        return {}.get("lr") * 0.5
    if how == "shape":
        return torch.randn(4, 33) @ torch.randn(32, 10)
    if how == "memory":
        return torch.empty(3_000_000, 3_000_000)
    if how == "name":
        return warmup_steps  # noqa: F821
    return None


early = job.args.noise == 3 and job.mine()
if early:
    schedule(job.how, 0)
job.begin()
for step, (x, y) in job.steps():
    if step == job.at and job.mine():
        job.say("adjusting schedule")
        schedule(job.how, step)
    job.report(step, job.learn(x, y))
hvd.allreduce(torch.ones(1), name="done")
