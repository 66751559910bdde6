from engine import Job, torch

job = Job().prepare()
job.train()
for name, parameter in job.model.named_parameters():
    parameter.mul_(0.9)
