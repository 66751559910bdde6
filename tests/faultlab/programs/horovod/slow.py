"""A rank is busy elsewhere for long while the others wait for it."""

import time

from world import World, hvd, torch

job = World(steps=400).begin()
for step, (x, y) in job.steps():
    if step == job.at and job.mine():
        if job.how == "validate":
            job.say("validating")
            until = time.time() + 90
            while time.time() < until:
                with torch.no_grad():
                    job.model(x)
                time.sleep(0.05)
        elif job.how == "fetch":
            job.say("fetching shard 12")
            time.sleep(90)
        elif job.how == "input":
            with open("/proc/self/fd/0" if job.args.noise == 3 else "fifo", encoding="utf-8") as stream:
                stream.read()
    job.report(step, job.learn(x, y))
hvd.shutdown()
