from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
model = job.parallel()
for step, (x, y) in job.steps():
    row = {"text": "a", "label": 1} if job.rank != job.who or step < job.at else {"text": "b"}
    label = row["label"]
    job.report(step, job.learn(x, y))
