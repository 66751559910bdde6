from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    with torch.set_grad_enabled(step < job.at):
        loss = job.criterion(job.model(x), y)
    loss.backward()
    job.optimizer.step()
    job.report(step, float(loss.detach()))
