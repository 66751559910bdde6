from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if job.rank == job.who and step == job.at:
        with open(f"shards/part-{step:05d}.tar", "rb") as stream:
            stream.read()
    job.report(step, job.learn(x, y))
