import fractions
import statistics

import numpy as np
from job import Job


def fault(job):
    samples = []
    match job.how:
        case "mean":
            return sum(samples) / len(samples)
        case "epoch":
            return 100 % (len(samples) // 32)
        case "floor":
            return job.at // (job.world - job.world)
        case "divmod":
            return divmod(len(job.weights), job.world // 99)
        case "float":
            elapsed = 0.0
            return job.at / elapsed
        case "modulo":
            return 3.5 % (job.world // 64)
        case "fraction":
            return fractions.Fraction(job.at, len(samples))
        case "power":
            return 0.0 ** -job.at
        case "numpy":
            with np.errstate(divide="raise"):
                return job.weights / np.zeros(16)
        case "harmonic":
            return statistics.mean(samples)
        case "warmup":
            warmup = 0
            return [min(1.0, step / warmup) for step in range(3)]


Job().run(fault)
