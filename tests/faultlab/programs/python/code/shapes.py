import numpy as np
from job import Job


def fault(job):
    x = job.rng.normal(size=(8, 16))
    match job.how:
        case "matmul":
            return x @ job.rng.normal(size=(12, 4))
        case "dot":
            return np.dot(x, x)
        case "broadcast":
            return x + np.arange(8)
        case "reshape":
            return x.reshape(5, -1)
        case "stack":
            return np.stack([x[0], x[1][:-2], x[2]])
        case "assign":
            buffer = np.zeros((4, 16))
            buffer[:] = x
            return buffer
        case "ragged":
            return np.array([[1, 2, 3], [4, 5]], dtype=np.float32)
        case "einsum":
            return np.einsum("bi,jk->bk", x, x[:, :5].T @ x[:, :3], x)
        case "axes":
            return np.transpose(x, (0, 2, 1))
        case "inverse":
            return np.linalg.inv(x)
        case "buffer":
            return np.frombuffer(b"0123456789abc", dtype=np.float32)


Job().run(fault)
