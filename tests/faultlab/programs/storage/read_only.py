import os
import shutil
import sqlite3
import tempfile

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "save":
            np.save("mnt/best.npy", job.weights)
        case "mkdir":
            os.makedirs(f"mnt/runs/{job.name}")
        case "unlink":
            os.remove("mnt/old.npy")
        case "rename":
            os.rename("mnt/old.npy", "mnt/older.npy")
        case "append":
            with open("mnt/history.csv", "a") as out:
                out.write("1\n")
        case "sqlite":
            sqlite3.connect("mnt/run.db").execute("create table x (y)")
        case "touch":
            os.utime("mnt/old.npy")
        case "temp":
            tempfile.mkdtemp(dir="mnt")
        case "tree":
            shutil.rmtree("mnt/cache")
        case "truncate":
            os.truncate("mnt/old.npy", 0)


Job().run(fault)
