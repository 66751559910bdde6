"""A rank's loss is no number any more; the average makes it everybody's, and a check sees it."""

from world import World, hvd, torch

job = World(steps=80).begin()
torch.autograd.set_detect_anomaly(job.how == "anomaly")
for step, (x, y) in job.steps():
    if step >= job.at and job.mine() and job.how in {"clip", "sample", "assert"}:
        for weight in job.model.parameters():
            weight.data.mul_(1e30)
    job.optimizer.zero_grad()
    out = job.model(x)
    if step == job.at and job.mine() and job.how == "anomaly":
        out = (out - out).sqrt() * 0
    loss = job.criterion(out, y)
    loss.backward()
    job.optimizer.synchronize()
    if job.how == "clip":
        torch.nn.utils.clip_grad_norm_(job.model.parameters(), 1.0, error_if_nonfinite=True)
    with job.optimizer.skip_synchronize():
        job.optimizer.step()
    mean = hvd.allreduce(loss.detach(), name="loss")
    if job.how == "assert":
        assert torch.isfinite(mean)
    if job.how == "sample":
        torch.distributions.Categorical(logits=job.model(x).detach()).sample()
    job.report(step, float(mean))
