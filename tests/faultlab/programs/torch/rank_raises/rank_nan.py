from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    loss = job.criterion(model(x), y)
    if job.rank == job.who and step == job.at:
        loss = loss * 1e30 * 1e30
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
    job.report(step, job.learn(x, y))
