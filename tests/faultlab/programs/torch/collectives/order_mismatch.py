from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        a, b = torch.ones(4), torch.ones(9)
        first = (dist.broadcast, dist.all_reduce) if job.rank == job.who else (dist.all_reduce, dist.broadcast)
        first[0](a, **({"src": 0} if first[0] is dist.broadcast else {}))
        first[1](b, **({"src": 0} if first[1] is dist.broadcast else {}))
        dist.all_gather([torch.zeros(9) for _ in range(job.world)], b)
    job.report(step, job.learn(x, y))
