import mmap
import os
import subprocess

import numpy as np
from job import Job


def fault(job):
    if job.how == "zeros":
        return np.zeros((240_000, 9_000))
    if job.how == "cache":
        kept = []
        while True:
            kept.append(bytearray(8 << 20))
    if job.how == "gram":
        x = np.ones((60_000, 4), dtype=np.float32)
        return x @ x.T
    if job.how == "concat":
        part = np.ones((1_000_000, 8))
        return np.concatenate([part] * 60)
    if job.how == "text":
        return ("feature " * 4_000_000) * 400
    if job.how == "map":
        return mmap.mmap(-1, 8 << 30)
    if job.how == "lists":
        return [[float(n + m) for n in range(1000)] for m in range(1_000_000)]
    if job.how == "fork":
        ballast = np.ones(int(os.environ.get("BALLAST", "1")))
        return subprocess.run(["true"], check=True), ballast.sum()
    return None


Job().run(fault)
