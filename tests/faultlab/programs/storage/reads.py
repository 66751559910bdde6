import os
import shutil

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "open":
            return open("mnt/shard.bin", "rb").read()
        case "list":
            return [os.stat(os.path.join("mnt", name)).st_size for name in os.listdir("mnt")]
        case "map":
            return np.memmap("mnt/shard.bin", dtype=np.uint8, mode="r").sum()
        case "copy":
            return shutil.copy("mnt/shard.bin", "shard.bin")
        case "write":
            with open("mnt/new.bin", "wb") as out:
                out.write(os.urandom(200_000))
                out.flush()
                os.fsync(out.fileno())
        case "direct":
            handle = os.open("mnt/shard.bin", os.O_RDONLY)
            return [os.pread(handle, 65536, offset) for offset in range(0, 900_000, 65536)]


Job().run(fault)
