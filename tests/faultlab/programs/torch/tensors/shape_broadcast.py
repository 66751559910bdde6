from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        mask = torch.ones(7)
        attention = torch.randn(job.args.batch, 12) * mask
