from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if job.rank == job.who and step == job.at:
        import ctypes
        ctypes.memset(0, 1, 16)
    job.report(step, job.learn(x, y))
