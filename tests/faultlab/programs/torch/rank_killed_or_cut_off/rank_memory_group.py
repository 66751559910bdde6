from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
kept = []
for step, (x, y) in job.steps():
    if job.rank == job.who and step >= job.at:
        kept.append(torch.ones(24, 1024, 1024))
    job.report(step, job.learn(x, y))
