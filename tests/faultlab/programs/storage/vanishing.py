import glob
import os
import time

import numpy as np
from job import Job

job = Job(pause=0.01, steps=400, every=4)
os.makedirs("shards", exist_ok=True)
for n in range(40):
    np.save(f"shards/{n:03d}.npy", np.full(8, n))


def reading(j):
    if j.how == "cwd":
        time.sleep(0.5)
        return os.getcwd()
    names = sorted(glob.glob("shards/*.npy"))
    for epoch in range(200):
        for name in names:
            np.load(name)
        j.step(epoch)
        j.say(f"epoch {epoch} read {len(names)} shards")
        if j.how == "self" and epoch == 2:
            for path in names[5:]:
                os.remove(path)
    return None


job.run(reading)
