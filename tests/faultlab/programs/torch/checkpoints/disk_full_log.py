import os

from engine import Job

job = Job().prepare()
stream = open("runs/events.log", "w", encoding="utf-8")
for step, (x, y) in job.steps():
    loss = job.learn(x, y)
    job.report(step, loss)
    stream.write(f"{step} {loss} " + "-" * 40_000 + "\n")
    stream.flush()
