from engine import Job, torch

job = Job()
job.prepare()
dist = job.join(job.how or "nccl")
job.train()
