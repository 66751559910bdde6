from engine import Job, torch

job = Job(how="mpi")
job.prepare()
dist = job.join(job.how)
