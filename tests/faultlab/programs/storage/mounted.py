import json
import os
import time

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "read":
            with open("mnt/shard.bin", "rb") as stream:
                return np.frombuffer(stream.read(), dtype=np.uint8).mean()
        case "list":
            return sorted(os.listdir("mnt"))
        case "stat":
            return os.path.getsize("mnt/index.json")
        case "index":
            with open("mnt/index.json") as stream:
                return json.load(stream)
        case "save":
            np.save("mnt/new.npy", np.zeros(90_000))
        case "flush":
            with open("mnt/new.ckpt", "wb") as out:
                out.write(bytes(400_000))
                os.fsync(out.fileno())
        case "loop":
            for number in range(40):
                job.step(number)
                with open("mnt/shard.bin", "rb", buffering=0) as stream:
                    stream.seek(number * 65536)
                    stream.read(65536)
                time.sleep(0.1)


Job().run(fault)
