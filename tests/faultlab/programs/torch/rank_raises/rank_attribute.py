from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if job.rank == job.who and step == job.at:
        model.module.classifier.weight.data.clamp_(-1, 1)
    job.report(step, job.learn(x, y))
