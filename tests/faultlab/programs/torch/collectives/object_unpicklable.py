from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        results = [None] * job.world
        dist.all_gather_object(results, {"metric": (value for value in range(3)) if job.rank == job.who else 1.0})
    job.report(step, job.learn(x, y))
