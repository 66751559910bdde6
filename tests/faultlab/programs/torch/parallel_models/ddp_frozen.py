from engine import Job

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
for parameter in job.model.parameters():
    parameter.requires_grad_(False)
model = job.parallel()
