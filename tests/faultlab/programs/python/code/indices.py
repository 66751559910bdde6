import itertools
import sys

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "list":
            losses = [0.3, 0.2]
            return losses[job.at]
        case "row":
            return job.weights.reshape(4, 4)[7]
        case "axis":
            return job.weights.mean(axis=2)
        case "columns":
            return job.rng.normal(size=(3, 4))[:, 6]
        case "many":
            return job.weights[0, 0]
        case "argv":
            return sys.argv[40]
        case "split":
            return "user item 4.5".split("\t")[2]
        case "gather":
            table = job.rng.normal(size=(10, 3))
            return table[np.array([0, 4, 10])]
        case "take":
            return np.take(job.weights, [3, 21])
        case "pop":
            return [].pop()
        case "string":
            return ""[0]
        case "hot":
            return np.eye(10)[np.array([3, 12])]
        case "next":
            return next(itertools.islice(iter([1]), 3, None))
        case "float":
            return job.weights[2.0]
        case "mask":
            return job.weights[np.ones(12, dtype=bool)]
        case "delete":
            return np.delete(job.weights, 99)


Job().run(fault)
