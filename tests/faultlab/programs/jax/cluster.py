"""Several processes train over the coordination service; something happens to one of them."""

import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from flow import Flow
from jax.experimental import multihost_utils

flow = Flow(pause=0.05, steps=80, at=80)
flow.join()
flow.prepare()
for number in range(flow.args.steps):
    flow.step(number)
    everyone = multihost_utils.process_allgather(np.float32(number))
    if number == 6 and flow.mine:
        match flow.how:
            case "exit":
                os._exit(5)
            case "raise":
                flow.params["w1"] @ jnp.zeros((5, 5))
            case "key":
                print({"batch": 3}["shard"])
            case "leave":
                sys.exit(0)
            case "shape":
                multihost_utils.process_allgather(np.zeros(3, dtype=np.float32))
            case "sleep":
                time.sleep(60)
            case "barrier":
                multihost_utils.sync_global_devices("checkpoint")
            case "file":
                np.load(f"shards/{flow.rank}.npy")
            case "abort":
                os.abort()
flow.say(f"done {everyone.sum()}")
