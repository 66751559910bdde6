"""A rank's native code breaks."""

import ctypes
import os

from world import World

job = World(steps=400).begin()
for step, (x, y) in job.steps():
    if step == job.at and job.mine():
        if job.how == "segfault":
            ctypes.memset(0, 1, 16)
        elif job.how == "abort":
            os.abort()
        elif job.how == "exit":
            os._exit(3)
    job.report(step, job.learn(x, y))
