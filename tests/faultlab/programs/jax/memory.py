import jax
import jax.numpy as jnp
from flow import Flow


def fault(flow):
    if flow.how == "huge":
        return jnp.ones((90_000_000, 9000)).sum()
    if flow.how == "outer":
        v = jnp.ones(400_000)
        return jnp.outer(v, v).sum().block_until_ready()
    if flow.how == "kept":
        kept = []
        while True:
            kept.append(jnp.ones((20_000_000,)).block_until_ready())
    return jax.jit(lambda v: jnp.einsum("i,j,k->ijk", v, v, v).sum())(jnp.ones(3000)).block_until_ready()


Flow().run(fault)
