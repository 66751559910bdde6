from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        parts = [torch.zeros(4) for _ in range(job.world - 1)]
        dist.all_gather(parts, torch.ones(4))
    job.report(step, job.learn(x, y))
