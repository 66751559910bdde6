from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    loss = job.criterion(job.model(x), y)
    job.report(step, float(loss.detach()))
    if step == job.at:
        history = loss.numpy()
