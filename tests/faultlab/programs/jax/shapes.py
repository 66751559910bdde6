import jax
import jax.numpy as jnp
from flow import Flow


def fault(flow):
    x, y = flow.batch()
    match flow.how:
        case "dot":
            return flow.loss(flow.params, x[:, :12], y)
        case "broadcast":
            return x + y
        case "concat":
            return jnp.concatenate([x, y], axis=0)
        case "reshape":
            return x.reshape(7, -1)
        case "conv":
            return jax.lax.conv(jnp.ones((2, 3, 8, 8)), jnp.ones((4, 5, 3, 3)), (1, 1), "SAME")
        case "scan":
            return jax.lax.scan(lambda c, v: (jnp.concatenate([c, v[:1]]), v), jnp.zeros(3), x)
        case "vmap":
            return jax.vmap(lambda a, b: a @ b)(x, y[:5])
        case "cond":
            return jax.lax.cond(True, lambda v: v[:4], lambda v: v[:5], x)
        case "einsum":
            return jnp.einsum("bi,ij->bj", x, y)
        case "pytree":
            return jax.tree.map(lambda a, b: a + b, flow.params, {"w1": 0.0, "w3": 0.0})
        case "stack":
            return jnp.stack([x[0], y[0]])


Flow().run(fault)
