from engine import Job, torch

job = Job()
dist = job.join(seconds=5)
job.prepare()
dist = job.join(seconds=5)
