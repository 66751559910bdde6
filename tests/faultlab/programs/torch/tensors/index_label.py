from engine import Job, nn, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        labels = torch.full((job.args.batch,), 10)
        nn.functional.nll_loss(torch.randn(job.args.batch, 10), labels)
