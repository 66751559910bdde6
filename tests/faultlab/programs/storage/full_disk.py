import csv
import json
import logging
import mmap
import os
import pickle
import shutil
import sqlite3
import tempfile
import zipfile

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "npz":
            np.savez("ckpt/step.npz", w=np.zeros(90_000))
        case "npy":
            np.save("ckpt/moments.npy", np.ones((400, 400)))
        case "pickle":
            with open("ckpt/state.pkl", "wb") as out:
                pickle.dump({n: os.urandom(900) for n in range(900)}, out)
        case "text":
            with open("ckpt/metrics.jsonl", "w") as out:
                for n in range(90_000):
                    out.write(json.dumps({"step": n, "loss": 0.1}) + "\n")
        case "copy":
            np.save("best.npy", np.ones((300, 300)))
            shutil.copy("best.npy", "ckpt/best.npy")
        case "temp":
            with tempfile.NamedTemporaryFile(dir="ckpt") as out:
                out.write(os.urandom(900_000))
                out.flush()
        case "sqlite":
            base = sqlite3.connect("ckpt/index.db")
            base.execute("create table t (x)")
            base.executemany("insert into t values (?)", ((os.urandom(300),) for _ in range(3000)))
            base.commit()
        case "zip":
            with zipfile.ZipFile("ckpt/artifacts.zip", "w") as out:
                out.writestr("weights.bin", os.urandom(900_000))
        case "log":
            logging.raiseExceptions = True
            handler = logging.FileHandler("ckpt/debug.log")
            quiet = logging.getLogger("debug")
            quiet.propagate = False
            quiet.addHandler(handler)
            for n in range(3):
                quiet.error("x" * 300_000)
            os.fsync(handler.stream.fileno())
            with open("ckpt/more", "w") as out:
                out.write("x" * 400_000)
        case "csv":
            with open("ckpt/predictions.csv", "w", newline="") as out:
                csv.writer(out).writerows([n, n * 0.5, "label"] for n in range(60_000))
        case "allocate":
            with open("ckpt/cache.bin", "wb") as out:
                os.posix_fallocate(out.fileno(), 0, 900_000)
        case "inodes":
            for n in range(9000):
                os.close(os.open(f"ckpt/sample-{n:06d}.json", os.O_CREAT | os.O_WRONLY))
        case "folders":
            for n in range(9000):
                os.mkdir(f"ckpt/run-{n}")


Job().run(fault)
