import math

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "overflow":
            with np.errstate(over="raise"):
                weights = job.weights.copy()
                for _ in range(400):
                    weights = weights * weights.dot(weights)
        case "invalid":
            with np.errstate(invalid="raise"):
                return np.log(job.weights - 50)
        case "log":
            return math.log(-float(job.weights @ job.weights))
        case "exp":
            return math.exp(float(job.at) * 1000)
        case "finite":
            job.weights *= 1e200
            for number in range(job.at, job.at + 9):
                loss = job.step(number)
            assert math.isfinite(loss), loss
        case "svd":
            bad = np.full((4, 4), np.nan)
            return np.linalg.svd(bad)
        case "singular":
            return np.linalg.cholesky(np.zeros((3, 3)) - np.eye(3))
        case "least":
            return np.linalg.lstsq(np.full((4, 2), np.nan), np.zeros(4), rcond=None)
        case "integer":
            job.weights *= np.nan
            return int(round(float(job.weights.sum())))
        case "sample":
            p = np.full(16, np.nan)
            return job.rng.choice(16, p=p)


Job().run(fault)
