from engine import Job, nn, torch

job = Job().prepare()
frozen = nn.Linear(4, 4)
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        total = sum(p.grad.norm() for p in [*job.model.parameters(), *frozen.parameters()])
