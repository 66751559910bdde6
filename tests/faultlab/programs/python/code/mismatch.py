import json

import numpy as np
from job import Job


class Sampler:
    def __init__(self, size, shuffle=True):
        self.size, self.shuffle = size, shuffle

    def draw(self, count):
        return list(range(count))


def collate(samples, pad_to):
    return [sample[:pad_to] for sample in samples]


def fault(job):
    match job.how:
        case "concat":
            return "epoch " + job.at
        case "keyword":
            return Sampler(10, shufle=False)
        case "missing":
            return collate([[1, 2], [3]])
        case "extra":
            return Sampler(10).draw(3, 4)
        case "json":
            return json.dumps({"loss": np.float32(0.3), "steps": np.int64(job.at)})
        case "hash":
            return {["lr", "wd"]: 3}
        case "call":
            loss = 0.4
            return loss(job.weights)
        case "iterate":
            for token in job.at:
                job.say(token)
        case "length":
            return len(job.rng.integers(3) + 0.5)
        case "compare":
            best = {"loss": 0.4}
            return best < {"loss": 0.3}
        case "integer":
            return range(job.at / 4)
        case "index":
            return [1, 2, 3]["0"]
        case "ufunc":
            return np.exp(np.array([1.0, None], dtype=object))
        case "casting":
            counts = np.zeros(16, dtype=np.int64)
            counts += job.weights
            return counts
        case "format":
            return "%d/%d" % (job.at,)
        case "unpack":
            first, second = 3.0
            return first, second
        case "await":
            async def load():
                return 3

            return load() + 1


Job().run(fault)
