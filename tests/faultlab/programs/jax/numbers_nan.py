import jax
import jax.numpy as jnp
import numpy as np
from flow import Flow


def fault(flow):
    x, y = flow.batch()
    match flow.how:
        case "debug":
            jax.config.update("jax_debug_nans", True)
            return jnp.log(-jnp.abs(x)).sum()
        case "infs":
            jax.config.update("jax_debug_infs", True)
            return jnp.exp(jnp.abs(x) * 1e6).sum()
        case "jit":
            jax.config.update("jax_debug_nans", True)
            return jax.jit(jax.grad(lambda p: jnp.sqrt(jnp.sum(p["w1"] * 0) - 1.0)))(flow.params)
        case "assert":
            flow.params = jax.tree.map(lambda p: p * 1e30, flow.params)
            loss = float(flow.loss(flow.params, x, y))
            assert np.isfinite(loss), f"{loss=}"
        case "checkify":
            from jax.experimental import checkify

            error, _ = checkify.checkify(lambda v: jnp.log(v) / 0.0, errors=checkify.float_checks)(x - 90)
            error.throw()
        case "index":
            from jax.experimental import checkify

            error, _ = checkify.checkify(lambda v: v[99], errors=checkify.index_checks)(x)
            error.throw()


Flow().run(fault)
