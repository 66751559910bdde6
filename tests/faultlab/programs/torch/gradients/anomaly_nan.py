from engine import Job, torch

job = Job().prepare()
torch.autograd.set_detect_anomaly(True)
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        scale = torch.zeros(4, requires_grad=True)
        (torch.sqrt(scale) * 0).sum().backward()
