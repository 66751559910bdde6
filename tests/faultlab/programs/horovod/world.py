"""What surrounds a failing line of a Horovod job: its ranks, the model told to all of them, the wrapped optimiser."""

import os

os.environ.setdefault("RANK", os.environ.get("HOROVOD_RANK", "0"))
os.environ.setdefault("WORLD_SIZE", os.environ.get("HOROVOD_SIZE", "1"))

import horovod.torch as hvd
from engine import Job, torch

__all__ = ["World", "hvd", "torch"]


class World(Job):
    """A job under horovodrun: options and log as engine's, ranks as Horovod's."""

    def begin(self, **words):
        """Join, build the model, give rank 0's to all, wrap the optimiser; words go to DistributedOptimizer."""
        hvd.init()
        self.say(f"rank {hvd.rank()} of {hvd.size()}, local {hvd.local_rank()}")
        self.prepare()
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(self.optimizer, root_rank=0)
        words.setdefault("named_parameters", self.model.named_parameters())
        self.optimizer = hvd.DistributedOptimizer(self.optimizer, **words)
        return self

    def mine(self):
        """Whether this is the rank that matters."""
        return self.rank == self.who
