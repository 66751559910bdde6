from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    loss = job.criterion(job.model(x), y)
    if step >= job.at:
        loss = loss * 1e30 * 1e30
    loss.backward()
    torch.nn.utils.clip_grad_norm_(job.model.parameters(), 1.0, error_if_nonfinite=True)
    job.optimizer.step()
    job.optimizer.zero_grad()
    job.report(step, float(loss.detach()))
