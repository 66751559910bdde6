import numpy as np
from job import Job


def fault(job):
    x = job.rng.normal(size=(8, 16))
    match job.how:
        case "divisible":
            heads = 6
            assert x.shape[1] % heads == 0, f"width {x.shape[1]} and {heads} heads"
        case "bare":
            batch = {"ids": [1, 2, 3], "mask": [1, 1]}
            assert len(batch["ids"]) == len(batch["mask"])
        case "world":
            tp, pp = 4, 4
            assert job.world % (tp * pp) == 0, (job.world, tp, pp)
        case "close":
            np.testing.assert_allclose(x.mean(axis=0), x.mean(axis=0) + 0.1, rtol=1e-3)
        case "range":
            lr = 3.0
            if not 0 < lr < 1:
                raise ValueError(f"{lr=}")
        case "type":
            if not isinstance(x, list):
                raise TypeError(type(x))
        case "choice":
            return {"adam": 1, "sgd": 2}.get("adamw") or next(n for n in (1, 2) if n > 4)
        case "exit":
            raise SystemExit(3)


Job().run(fault)
