"""One rank goes wrong; the others wait for it at the next step."""

import os
import sys
import time

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "exit":
            sys.exit(0)
        case "code":
            os._exit(17)
        case "shape":
            job.meet(np.zeros(5))
        case "skip":
            return
        case "slow":
            time.sleep(600)
        case "twice":
            job.meet(np.zeros(16))
            job.meet(np.zeros(16))
        case "object":
            job.meet({"grad": 3})


Job().run(fault)
