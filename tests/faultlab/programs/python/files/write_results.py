import csv
import logging
import os
import sqlite3

import numpy as np
from job import Job


def fault(job):
    if job.how == "npz":
        np.savez(f"outputs/{job.name}/step-{job.at}.npz", w=job.weights)
    elif job.how == "csv":
        with open(f"results/{job.name}.csv", "w", newline="") as stream:
            csv.writer(stream).writerow(["step", "loss"])
    elif job.how == "log":
        logging.getLogger("metrics").addHandler(logging.FileHandler(f"logs/{job.name}/train.log"))
    elif job.how == "rename":
        np.save("weights.tmp.npy", job.weights)
        os.replace("weights.tmp.npy", "best/weights.npy")
    elif job.how == "link":
        os.unlink("checkpoints/last")
    elif job.how == "sqlite":
        sqlite3.connect("metrics/run.db").execute("create table loss (step, value)")


Job().run(fault)
