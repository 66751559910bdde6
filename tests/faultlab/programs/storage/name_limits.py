import os

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "long":
            np.save("run-" + "-".join(f"{k}={v}" for k, v in vars(job.args).items()) * 4 + ".npy", job.weights)
        case "directory":
            os.makedirs("ckpt/last.npy", exist_ok=True)
            with open("ckpt/last.npy", "wb") as out:
                out.write(b"1")
        case "notdir":
            np.save("metrics.npy", job.weights)
            os.makedirs("metrics.npy/run1")
        case "exists":
            os.mkdir("runs")
            os.mkdir("runs")
        case "notempty":
            os.makedirs("runs/a")
            os.rmdir("runs")
        case "cross":
            np.save("a.npy", job.weights)
            os.rename("a.npy", "/dev/shm/a.npy")
        case "nul":
            open("data\0set.bin")
        case "loop":
            os.symlink("b", "a")
            os.symlink("a", "b")
            open("a")
        case "busy":
            os.rmdir("/proc")
        case "link":
            os.symlink("/mnt/old/data", "data")
            return np.load("data/train.npy")


Job().run(fault)
