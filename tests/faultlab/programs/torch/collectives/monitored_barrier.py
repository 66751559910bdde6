import datetime

from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    if step == job.at:
        if job.rank == job.who:
            import time

            time.sleep(30)
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=4), wait_all_ranks=job.how == "all")
    job.report(step, job.learn(x, y))
