import multiprocessing.shared_memory as shared

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "bus":
            block = shared.SharedMemory(create=True, size=64 << 20)
            try:
                np.ndarray((8 << 20,), dtype=np.float64, buffer=block.buf)[:] = 1
            finally:
                block.unlink()
        case "write":
            with open("/dev/shm/batch", "wb") as out:
                out.write(bytes(20 << 20))
        case "gone":
            return shared.SharedMemory(name="loader-ring-0")
        case "twice":
            first = shared.SharedMemory(create=True, size=4096, name=f"ring-{job.seed}-lab")
            try:
                return shared.SharedMemory(create=True, size=4096, name=f"ring-{job.seed}-lab")
            finally:
                first.unlink()
        case "zero":
            return shared.SharedMemory(create=True, size=0)


Job().run(fault)
