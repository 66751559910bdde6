import os

import jax
import jax.numpy as jnp
import numpy as np
from flow import Flow


def fault(flow):
    import orbax.checkpoint as ocp

    here = os.path.join(os.getcwd(), "ckpt")
    match flow.how:
        case "missing":
            return ocp.StandardCheckpointer().restore(os.path.join(here, "120"))
        case "exists":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save(os.path.join(here, "4"), flow.params)
                keeper.wait_until_finished()
                keeper.save(os.path.join(here, "4"), flow.params)
        case "relative":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save("ckpt/4", flow.params)
        case "shape":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save(os.path.join(here, "4"), flow.params)
                keeper.wait_until_finished()
                wanted = {"w1": jax.ShapeDtypeStruct((16, 64), jnp.float32), "w2": jax.ShapeDtypeStruct((32, 4), jnp.float32)}
                restored = keeper.restore(os.path.join(here, "4"), wanted)
                return flow.loss(restored, *flow.batch())
        case "tree":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save(os.path.join(here, "4"), flow.params)
                keeper.wait_until_finished()
                return keeper.restore(os.path.join(here, "4"), {"encoder": {"w1": jax.ShapeDtypeStruct((16, 32), jnp.float32)}})
        case "denied" | "full":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save(os.path.join(os.getcwd(), "out", "4"), {"w": jnp.ones((900, 900))})
                keeper.wait_until_finished()
        case "cut":
            with ocp.StandardCheckpointer() as keeper:
                keeper.save(os.path.join(here, "4"), flow.params)
                keeper.wait_until_finished()
                for folder, _, names in os.walk(here):
                    for name in names:
                        os.truncate(os.path.join(folder, name), 5)
                return keeper.restore(os.path.join(here, "4"), flow.params)
        case "npz":
            np.savez("params.npz", **{k: np.asarray(v) for k, v in flow.params.items()})
            with np.load("params.npz") as kept:
                return {name: jnp.asarray(kept[name]) for name in ("w1", "w2", "w3")}


Flow().run(fault)
