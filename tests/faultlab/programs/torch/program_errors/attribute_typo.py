from engine import Job, torch

job = Job().prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    if step == job.at:
        job.optimizer.param_group[0]["lr"] *= 0.1
