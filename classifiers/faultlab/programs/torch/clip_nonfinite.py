from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    if step >= job.at and x.is_floating_point():
        x = x * 1e30
    loss = job.criterion(job.model(x), y)
    if not x.is_floating_point() and step >= job.at:
        loss = loss / (loss.detach() - loss.detach())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(job.model.parameters(), 1.0, error_if_nonfinite=True)
    job.optimizer.step()
    job.optimizer.zero_grad()
    job.report(step, float(loss.detach()))
