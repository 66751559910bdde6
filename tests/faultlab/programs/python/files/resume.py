import glob
import os

import numpy as np
from job import Job


def fault(job):
    if job.how == "pointer":
        with open("checkpoints/latest") as stream:
            step = stream.read().strip()
        return np.load(f"checkpoints/{step}/weights.npz")
    if job.how == "newest":
        return np.load(sorted(glob.glob("checkpoints/step-*.npz"))[-1])
    if job.how == "max":
        return np.load(max(glob.glob("runs/*/last.npz"), key=os.path.getmtime))
    path = os.environ["RESUME_FROM"]
    job.say(f"resuming from {path}")
    return np.load(path)


Job().run(fault)
