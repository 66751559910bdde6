from engine import Job, torch

job = Job().prepare()
job.train()
out = job.model.backbone(job.make(2)[0])
