import argparse
import json
import types

import numpy as np
from job import Job


class Model:
    __slots__ = ("width",)

    def __init__(self, width):
        self.width = width


class Wrapper:
    def __init__(self, model):
        self.module = model


def fault(job):
    match job.how:
        case "typo":
            return np.random.default_rng(3).nomal(size=3)
        case "module":
            return np.linalg.matmull(job.weights, job.weights)
        case "wrapped":
            return Wrapper(Model(4)).width
        case "namespace":
            return argparse.Namespace(lr=0.1).learning_rate
        case "string":
            return "a,b".explode(",")
        case "dict":
            return {"lr": 0.1}.lr
        case "list":
            return [1, 2].add(3)
        case "slots":
            Model(4).depth = 3
        case "array":
            return job.weights.cuda()
        case "float":
            return (0.5).item()
        case "tuple":
            batch = (job.weights, 3)
            return batch.shape
        case "shadow":
            import random as json_

            return json_.loads("{}")
        case "int":
            return types.SimpleNamespace(steps=4).steps.append(3)
        case "function":
            return fault.parameters()
        case "bytes":
            return json.dumps({"a": 1}).encode().encode()


Job().run(fault)
