import inspect
import time

import numpy as np
from job import Job


def fault(job):
    if job.how == "float":
        return np.zeros(4, dtype=np.float)
    if job.how == "bool8":
        return np.ones(3).astype(np.bool8)
    if job.how == "product":
        return np.product([2, 3])
    if job.how == "clock":
        return time.clock()
    if job.how == "argspec":
        return inspect.getargspec(Job.step)
    if job.how == "in1d":
        return np.in1d(np.arange(4), np.arange(2)) & np.row_stack([np.arange(2)])
    if job.how == "thread":
        import threading

        return threading.current_thread().isAlive()
    return None


Job().run(fault)
