from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    pass
    job.report(step, job.learn(x, y))
