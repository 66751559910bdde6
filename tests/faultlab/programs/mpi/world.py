"""A data-parallel training over MPI: each step sums gradients of all ranks."""

import argparse
import os
import random
import sys
import time

import numpy as np
from mpi4py import MPI


class World:
    """Options, ranks, a model of made-up numbers."""

    def __init__(self, **defaults):
        parser = argparse.ArgumentParser()
        parser.add_argument("--how", default="")
        parser.add_argument("--at", type=int, default=10)
        parser.add_argument("--steps", type=int, default=60)
        parser.add_argument("--who", type=int, default=1)
        parser.add_argument("--log", default="root", choices=["root", "all", "tag", "quiet", "time"])
        parser.add_argument("--pause", type=float, default=0.0)
        parser.set_defaults(**defaults)
        self.args = parser.parse_args()
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.how, self.at = self.args.how, self.args.at
        self.mine = self.args.who < 0 or self.rank == self.args.who % self.size
        self.draw = random.Random(int(os.environ.get("LAB_SEED", "1")) * 31 + self.rank)
        self.weights = np.random.default_rng(self.rank).normal(size=32)
        self.say(f"rank {self.rank} of {self.size} on {MPI.Get_processor_name()}, {MPI.Get_library_version().split(',')[0].split(chr(10))[0].strip()}")

    def say(self, text):
        """A line in the job's style."""
        if self.args.log == "quiet" or (self.rank and self.args.log in {"root", "time"}):
            return
        mark = {"tag": f"[{self.rank}] ", "time": time.strftime("%H:%M:%S "), "all": f"rank{self.rank}: "}.get(self.args.log, "")
        print(mark + text, flush=True)

    def step(self, number):
        """One step of all ranks."""
        total = np.empty_like(self.weights)
        self.comm.Allreduce(self.weights * 0.01, total, op=MPI.SUM)
        self.weights -= total / self.size
        self.say(f"step {number} loss {float((self.weights**2).mean()):.5f} ({self.draw.uniform(3, 9):.1f} ms)")
        time.sleep(self.args.pause)

    def run(self, fault):
        """Steps, then `fault(world)` on the ranks that matter, then further steps."""
        for number in range(self.at):
            self.step(number)
        if self.mine:
            fault(self)
        for number in range(self.at, self.args.steps):
            self.step(number)
        self.say("finished")
        sys.stdout.flush()
