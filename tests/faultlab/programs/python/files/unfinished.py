import abc
import io
import multiprocessing
import os
import signal

import numpy as np
from job import Job


class Base(abc.ABC):
    @abc.abstractmethod
    def forward(self, x): ...

    def export(self):
        raise NotImplementedError(type(self).__qualname__)

    def shard(self):
        raise NotImplementedError(f"{type(self).__name__}.shard")


class Child(Base):
    def forward(self, x):
        return super().forward(x)


class Half(Base):
    def backward(self, x):
        return x


def fault(job):
    match job.how:
        case "abstract":
            return Half()
        case "export":
            return Child().export()
        case "shard":
            return Child().shard()
        case "operator":
            return Child() @ Child()
        case "seek":
            with open(__file__) as stream:
                stream.readline()
                return stream.seek(-3, io.SEEK_END)
        case "write":
            with open(__file__) as stream:
                stream.write("x")
        case "context":
            return multiprocessing.get_context("forkspawn")
        case "ufunc":
            return np.bitwise_and(job.weights, job.weights)
        case "string":
            return np.add.reduce(np.array(["a", "b"])) - np.array(["a"])
        case "coroutine":
            import asyncio

            return asyncio.get_event_loop_policy().new_event_loop().connect_write_pipe(None, None).send(1)
        case "signal":
            return signal.signal(signal.SIGKILL, signal.SIG_IGN)
        case "generator":
            return np.random.BitGenerator().random_raw()
        case "terminal":
            return os.get_terminal_size()


Job().run(fault)
