from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    best = None if job.rank == job.who and step == job.at else x
    best.mean() if best.is_floating_point() else best.sum()
    job.report(step, job.learn(x, y))
