import os
import urllib.request

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=10)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at and job.rank == job.who:
        urllib.request.urlopen(os.environ["STORE"] + f"/bucket/shard-{step:05d}.tar", timeout=3).read()
