import jax
import jax.numpy as jnp
import numpy as np
from flow import Flow

KEPT = []


def fault(flow):
    x, y = flow.batch()
    match flow.how:
        case "bool":
            return jax.jit(lambda v: v if v.sum() > 0 else -v)(x)
        case "int":
            return jax.jit(lambda v, n: v[: int(n)])(x, 3)
        case "array":
            return jax.jit(lambda v: np.asarray(v).mean())(x)
        case "leak":
            jax.jit(lambda v: KEPT.append(v) or v.sum())(x)
            return KEPT[0] + 1
        case "shape":
            return jax.jit(lambda n: jnp.zeros((n, 3)))(4)
        case "mask":
            return jax.jit(lambda v: v[v > 0])(x)
        case "static":
            return jax.jit(lambda v, o: v, static_argnums=1)(x, [1, 2])
        case "donate":
            f = jax.jit(lambda v: v * 2, donate_argnums=0)
            f(x)
            return x.block_until_ready() + 1 if x.is_deleted() else flow.params["missing"]
        case "grad":
            return jax.grad(lambda p: flow.loss(p, x, y) * jnp.ones(3))(flow.params)
        case "integer":
            return jax.grad(lambda n: n * 2.0)(3)
        case "item":
            x[0, 0] = 3.0
        case "range":
            return jax.jit(lambda n: [k for k in range(n)])(3)
        case "key":
            return jax.random.normal(3.5, (3,))
        case "string":
            return jax.jit(lambda v, name: v)(x, "relu")


Flow().run(fault)
