from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        history = torch.arange(float(job.rank + 1))
        dist.all_gather_into_tensor(torch.zeros(job.world * 2), history)
    job.report(step, job.learn(x, y))
