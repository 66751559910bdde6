from engine import Job, torch

job = Job().prepare()
registry = {"resnet": None}
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        ema = registry.get("ema")
        for ours, theirs in zip(job.model.parameters(), ema.parameters()):
            theirs.data.lerp_(ours.data, 0.1)
