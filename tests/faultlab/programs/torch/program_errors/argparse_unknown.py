from engine import Job

job = Job().prepare()
job.train()
