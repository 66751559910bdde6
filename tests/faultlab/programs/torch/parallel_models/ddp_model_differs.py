from engine import Job, nn, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
job.model = nn.Sequential(nn.Linear(20, 10), *([nn.Linear(10, 10)] if job.rank == job.who else []))
model = job.parallel()
job.train(model=model)
