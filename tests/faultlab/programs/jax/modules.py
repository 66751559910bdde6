import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flow import Flow


class Net(nn.Module):
    width: int = 32

    @nn.compact
    def __call__(self, x, train=False):
        x = nn.Dense(self.width)(x)
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(4)(x)


def fault(flow):
    x, y = flow.batch()
    params = Net().init(jax.random.key(0), x)
    match flow.how:
        case "shape":
            return Net().apply(params, x[:, :9])
        case "width":
            return Net(width=64).apply(params, x)
        case "rng":
            return Net().apply(params, x, train=True)
        case "scope":
            return Net()(x)
        case "missing":
            return Net().apply({"params": {"Dense_0": params["params"]["Dense_0"]}}, x)
        case "keyword":
            return Net(hidden=3)
        case "frozen":
            net = Net()
            net.width = 9
        case "optimizer":
            opt = optax.adam(1e-3)
            return opt.update({"other": jnp.ones(3)}, opt.init(params), params)
        case "schedule":
            return optax.warmup_cosine_decay_schedule(0.0, 1e-3, warmup_steps=500, decay_steps=100)
        case "labels":
            return optax.softmax_cross_entropy_with_integer_labels(y, jnp.zeros(8))
        case "name":
            return optax.adamx(1e-3)


Flow().run(fault)
