from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        dist.all_gather([torch.zeros(4) for _ in range(job.world)], torch.ones(4, dtype=torch.int64))
    job.report(step, job.learn(x, y))
