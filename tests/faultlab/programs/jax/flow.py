"""A small JAX training: options, ranks, an MLP on made-up numbers, a jitted step, a log."""

import argparse
import json
import logging
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np


class Flow:
    """Options and the usual pieces; `step` trains, `run` calls the program's own function at its step."""

    def __init__(self, **defaults):
        parser = argparse.ArgumentParser()
        parser.add_argument("--how", default="")
        parser.add_argument("--at", type=int, default=4)
        parser.add_argument("--steps", type=int, default=20)
        parser.add_argument("--who", type=int, default=-1)
        parser.add_argument("--log", default="print", choices=["print", "absl", "json", "quiet", "clu"])
        parser.add_argument("--pause", type=float, default=0.0)
        parser.add_argument("--beat", type=int, default=3, help="seconds after which a silent process counts as lost")
        parser.set_defaults(**defaults)
        self.args = parser.parse_args()
        self.how, self.at = self.args.how, self.args.at
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.mine = self.args.who < 0 or self.rank == self.args.who % self.world
        self.rng = np.random.default_rng(int(os.environ.get("LAB_SEED", 1)))
        if self.args.log in {"absl", "clu"}:
            form = "I%(asctime)s %(process)d %(filename)s:%(lineno)d] %(message)s" if self.args.log == "absl" else "%(asctime)s [%(levelname)s] %(message)s"
            logging.basicConfig(level=logging.INFO, format=form, datefmt="%m%d %H:%M:%S", stream=sys.stderr)

    def join(self, **words):
        """Meet the other processes at the coordinator."""
        given = {"coordinator_address": f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}", "num_processes": self.world, "process_id": self.rank}
        given |= {"initialization_timeout": 6, "heartbeat_timeout_seconds": self.args.beat, "shutdown_timeout_seconds": 3}
        jax.distributed.initialize(**(given | words))
        self.say(f"process {jax.process_index()} of {jax.process_count()}, {jax.local_device_count()} local devices")

    def prepare(self):
        """Parameters and the jitted step."""
        self.params = {"w1": jnp.asarray(self.rng.normal(size=(16, 32)) * 0.1), "w2": jnp.asarray(self.rng.normal(size=(32, 4)) * 0.1)}
        self.say(f"JAX {jax.__version__}, backend {jax.default_backend()}, {sum(p.size for p in self.params.values())} parameters")
        return self

    def say(self, text):
        """A line in the job's style."""
        if self.args.log == "quiet" or (self.rank and self.args.log in {"print", "clu"}):
            return
        if self.args.log in {"absl", "clu"}:
            logging.info("[%d] %s", self.rank, text)
        elif self.args.log == "json":
            print(json.dumps({"time": round(time.time(), 2), "process": self.rank, "text": text}), flush=True)
        else:
            print(text, flush=True)

    @staticmethod
    def loss(params, x, y):
        """Mean square error of the MLP."""
        return jnp.mean((jax.nn.relu(x @ params["w1"]) @ params["w2"] - y) ** 2)

    def batch(self, size=8):
        """Made-up inputs and targets."""
        return jnp.asarray(self.rng.normal(size=(size, 16))), jnp.asarray(self.rng.normal(size=(size, 4)))

    def step(self, number):
        """One step; the loss is said."""
        value, grads = jax.jit(jax.value_and_grad(self.loss))(self.params, *self.batch())
        self.params = jax.tree.map(lambda p, g: p - 0.05 * g, self.params, grads)
        self.say(f"step {number} loss={float(value):.4f}")
        time.sleep(self.args.pause)

    def run(self, fault):
        """Steps, the program's own function, further steps."""
        self.prepare()
        for number in range(self.at):
            self.step(number)
        if self.mine:
            fault(self)
        for number in range(self.at, self.args.steps):
            self.step(number)
        self.say("done")
