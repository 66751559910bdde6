from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at and job.rank != job.who:
        dist.all_reduce(torch.ones(1))
        dist.barrier()
    if step == job.at and job.rank == job.who:
        job.say("skipping statistics")
        import time

        time.sleep(40)
    job.report(step, job.learn(x, y))
