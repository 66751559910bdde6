from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if job.rank == job.who and step == job.at:
        lr = job.args.lr * ("0.5" if step else 1)
        lr = lr + 1
    job.report(step, job.learn(x, y))
