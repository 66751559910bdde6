from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    loss = job.criterion(job.model(x), y)
    loss.backward()
    if step >= job.at:
        loss.backward()
    job.optimizer.step()
    job.optimizer.zero_grad()
    job.report(step, float(loss.detach()))
