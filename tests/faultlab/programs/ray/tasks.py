import os
import time

import numpy as np
import ray
from cell import Cell

cell = Cell()


@ray.remote(max_retries=cell.args.retries)
def shard(number, how):
    time.sleep(0.02)
    if number != 3:
        return number
    match how:
        case "key":
            return {"train": 1}[f"fold{number}"]
        case "file":
            return np.load(f"shards/{number}.npy")
        case "zero":
            return 1 / (number - 3)
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), 9)
        case "segv":
            import ctypes

            ctypes.string_at(0)
        case "import":
            import xgboost_ray

            return xgboost_ray
        case "shape":
            return np.ones((3, 4)) @ np.ones((5, 2))
        case "memory":
            return np.ones((900_000, 90_000))
        case "unpicklable":
            return (n for n in range(3))
        case "slow":
            time.sleep(60)
    return number


jobs = [shard.options(name=f"shard_{n}").remote(n, cell.how) for n in range(6)]
print("submitted", len(jobs), flush=True)
print(sum(ray.get(jobs, timeout=4 if cell.how == "slow" else 40)))
