import os
import shutil
import socket
import subprocess
from pathlib import Path

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "read":
            return Path("secrets/wandb.key").read_text()
        case "shard":
            return np.load("data/shard-00003.npy")
        case "mkdir":
            os.makedirs(f"shared/runs/{job.name}", exist_ok=True)
        case "save":
            np.save("shared/best.npy", job.weights)
        case "append":
            with open("history.csv", "a") as stream:
                stream.write("1,2\n")
        case "run":
            subprocess.run(["./prepare.sh"], check=True)
        case "unlink":
            os.remove("shared/old.npy")
        case "copy":
            np.save("best.npy", job.weights)
            shutil.copyfile("best.npy", "shared/best.npy")
        case "list":
            return os.listdir("shared/private")
        case "port":
            socket.socket().bind(("0.0.0.0", 443))
        case "chown":
            np.save("best.npy", job.weights)
            os.chown("best.npy", 4021, 4021)
        case "nice":
            os.nice(-10)


Job().run(fault)
