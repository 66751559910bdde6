from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        statistics = torch.zeros(8 if job.rank != job.who else 40)
        dist.all_reduce(statistics)
    job.report(step, job.learn(x, y))
