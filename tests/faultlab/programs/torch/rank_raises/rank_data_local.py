import os

import numpy as np
from engine import Job, torch

job = Job(steps=600)
dist = job.join(seconds=8)
job.prepare()
shard = f"{os.getcwd()}/data/rank{job.rank}.npy" if job.how == "" else f"/local/scratch/{job.dataset}/{job.rank}.npy"
if job.rank != job.who:
    os.makedirs("data", exist_ok=True)
    shard = f"data/ok{job.rank}.npy"
    np.save(shard, np.zeros((4, 4)))
samples = torch.from_numpy(np.load(shard))
model = job.parallel()
for step, (x, y) in job.steps():
    job.report(step, job.learn(x, y))
