import time

from engine import Job

job = Job(steps=100000).prepare()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
    time.sleep(0.02)
