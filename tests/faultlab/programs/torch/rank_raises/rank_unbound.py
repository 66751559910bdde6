from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if job.rank != job.who or step < job.at:
        scale = 1.0
    else:
        del scale
    scale *= 2
    job.report(step, job.learn(x, y))
