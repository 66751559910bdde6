import os

import numpy as np
from world import World


def fault(world):
    match world.how:
        case "key":
            return {"lr": 0.1}["weight_decay"]
        case "file":
            return np.load(f"shards/rank{world.rank}.npy")
        case "index":
            return world.weights[world.size * 40]
        case "none":
            return None + world.rank
        case "zero":
            return world.at // (world.rank - world.args.who % world.size)
        case "memory":
            return np.ones((900_000, 90_000))
        case "shape":
            return world.weights @ np.zeros((31, 2))
        case "environ":
            return os.environ["LOCAL_CACHE"]
        case "import":
            import cupy

            return cupy.zeros(3)
        case "assert":
            assert world.size % 7 == 0, f"{world.size=}"


World().run(fault)
