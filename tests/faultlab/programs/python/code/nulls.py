import os
import re

from job import Job


class Registry:
    def __init__(self):
        self.models = {}

    def get(self, name):
        return self.models.get(name)


def load_tokenizer(path):
    if os.path.exists(path):
        return path


def fault(job):
    match job.how:
        case "method":
            return Registry().get("resnet-tiny").forward(3)
        case "subscript":
            return Registry().get("resnet-tiny")["weights"]
        case "match":
            return re.match(r"step-(\d+)\.npz", f"epoch-{job.at}.npz").group(1)
        case "iterate":
            return [token for token in load_tokenizer("tok.model")]
        case "length":
            return len(load_tokenizer("tok.model"))
        case "call":
            scheduler = Registry().get("cosine")
            return scheduler(job.at)
        case "arithmetic":
            grad = Registry().get("grad")
            return job.weights - 0.1 * grad
        case "environ":
            return os.path.join(os.environ.get("DATA_ROOT"), "train")
        case "integer":
            return int(os.environ.get("NODE_RANK"))
        case "unpack":
            x, y = load_tokenizer("x")
            return x, y
        case "item":
            job.best = None
            job.best["loss"] = 3
        case "sorted":
            return sorted([0.3, None, 0.1])
        case "with":
            with load_tokenizer("x") as handle:
                return handle


Job().run(fault)
