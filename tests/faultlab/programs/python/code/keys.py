import json
import os
import sqlite3

import numpy as np
from job import Job


def fault(job):
    match job.how:
        case "environ":
            return os.environ["MLFLOW_EXPERIMENT"]
        case "local":
            return int(os.environ["LOCAL_WORLD_SIZ"])
        case "config":
            return {"model": {"width": 64}}["model"]["hidden_size"]
        case "archive":
            np.savez("ckpt.npz", weight=job.weights, step=3)
            return np.load("ckpt.npz")["optimizer"]
        case "vocabulary":
            vocabulary = {word: n for n, word in enumerate("the cat sat on a mat".split())}
            return [vocabulary[word] for word in "the dog sat".split()]
        case "json":
            return json.loads('{"images": [], "info": {}}')["annotations"]
        case "label":
            names = {0: "car", 1: "van", 2: "bus"}
            return [names[int(n)] for n in (0, 2, 3)]
        case "column":
            base = sqlite3.connect(":memory:")
            base.execute("create table samples (path, split)")
            return base.execute("select path, label from samples").fetchall()
        case "table":
            return sqlite3.connect("index.db").execute("select * from shards").fetchall()
        case "field":
            rows = np.zeros(3, dtype=[("user", "i4"), ("item", "i4")])
            return rows["rating"]
        case "pop":
            state = {"epoch": 1}
            return state.pop("scheduler")
        case "template":
            return "runs/{name}/{date}".format(name=job.name)
        case "set":
            seen = {1, 2}
            seen.remove(3)


Job().run(fault)
