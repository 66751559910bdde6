from engine import Job, torch

job = Job().prepare()
handles = []
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    for part in range(8):
        handles.append(open(f"part_{step}_{part}.bin", "wb"))
