from engine import Job, torch

job = Job().prepare()
history = []
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step >= job.at:
        history.append(torch.ones(16, 1024, 1024))
