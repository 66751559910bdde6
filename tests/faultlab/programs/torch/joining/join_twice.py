from engine import Job, torch

job = Job()
dist = job.join(seconds=8)
job.prepare()
dist = job.join(seconds=8)
