from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == 0:
        torch.autograd.set_detect_anomaly(True)
    if job.rank == job.who and step == job.at:
        (torch.zeros(3, requires_grad=True).sqrt() * 0).sum().backward()
    job.report(step, job.learn(x, y))
