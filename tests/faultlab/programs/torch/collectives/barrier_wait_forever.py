import os
import time

from engine import Job, torch

job = Job()
dist = job.join()
job.prepare()
model = job.parallel()
job.train(model=model)
if job.rank == 0:
    job.say("waiting for preprocessed cache")
    while not os.path.exists("cache/ready"):
        time.sleep(0.1)
dist.barrier()
