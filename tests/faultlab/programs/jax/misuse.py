import functools

import jax
import jax.numpy as jnp
from flow import Flow


def fault(flow):
    x, _ = flow.batch()
    match flow.how:
        case "keyword":
            return jnp.mean(x, dim=1)
        case "argument":
            return jax.nn.one_hot(x)
        case "attribute":
            return jax.numpy.nanmode(x)
        case "tree":
            return jax.tree_map(lambda p: p, flow.params)
        case "config":
            jax.config.update("jax_enable_x65", True)
        case "device":
            return jax.device_put(x, jax.devices("gpu")[0])
        case "index":
            return jax.devices()[3]
        case "backend":
            return jax.local_devices(backend="tpu")
        case "scatter":
            return x.at[0].sett(3)
        case "names":
            return jax.lax.psum(x, "batch")
        case "mesh":
            return jax.make_mesh((4, 2), ("data", "model"))
        case "spec":
            mesh = jax.make_mesh((1,), ("data",))
            return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("model")))
        case "pmap":
            return jax.pmap(lambda v: v * 2)(x)
        case "partial":
            return functools.partial(flow.loss, params=flow.params)(x)
        case "precision":
            return jnp.dot(x, x.T, precision="bf32")


Flow().run(fault)
