"""What surrounds a failing line in a plain Python job: options, log styles, ranks that meet at every step, ways to fail."""

import argparse
import asyncio
import concurrent.futures
import json
import logging
import multiprocessing
import multiprocessing.connection
import os
import random
import socket
import sys
import time
import traceback
import warnings

import numpy as np

STYLES = ("print", "logging", "json", "tqdm", "hydra", "glog", "loguru", "quiet", "rank", "csv", "bars", "syslog")
MANNERS = ("plain", "logged", "wrapped", "thread", "pool", "async", "short", "hook", "tries", "nested")
NAMES = ("criteo-sub", "ljspeech", "openwebtext-10k", "cifar10", "movielens-1m", "protein-families", "kitti-mini", "wmt14-en-de", "laion-nano")
CURRENT = None


def _call():
    return CURRENT.fault(CURRENT)


class Job:
    """A linear model on made-up numbers, trained until the step at which the program does what it does."""

    def __init__(self, **defaults):
        parser = argparse.ArgumentParser()
        parser.add_argument("--log", default="print", choices=STYLES)
        parser.add_argument("--manner", default="plain", choices=MANNERS)
        parser.add_argument("--how", default="")
        parser.add_argument("--at", type=int, default=12)
        parser.add_argument("--steps", type=int, default=80)
        parser.add_argument("--every", type=int, default=1)
        parser.add_argument("--noise", type=int, default=0)
        parser.add_argument("--who", type=int, default=-1, help="the rank that matters, -1: all")
        parser.add_argument("--pause", type=float, default=0.0)
        parser.set_defaults(**defaults)
        self.args, self.rest = parser.parse_known_args()
        env = os.environ
        self.rank = int(env.get("RANK") or env.get("OMPI_COMM_WORLD_RANK") or env.get("PMI_RANK") or 0)
        self.world = int(env.get("WORLD_SIZE") or env.get("OMPI_COMM_WORLD_SIZE") or env.get("PMI_SIZE") or 1)
        seed = int(env.get("LAB_SEED", "1"))
        self.seed, self.how, self.at = seed, self.args.how, self.args.at
        self.draw = random.Random(seed * 7919 + self.rank + len(self.args.log) * 31 + self.at)
        self.rng = np.random.default_rng(seed + self.rank)
        self.name = self.draw.choice(NAMES)
        self.weights = self.rng.normal(size=16)
        self.bar, self.hub, self.spokes = None, None, []
        forms = {
            "logging": "%(asctime)s %(levelname)s %(name)s: %(message)s",
            "hydra": "[%(asctime)s][%(name)s][%(levelname)s] - %(message)s",
            "loguru": "%(asctime)s.271 | %(levelname)-8s | __main__:fit:74 - %(message)s",
            "syslog": "%(levelname).1s %(asctime)s %(process)d %(module)s] %(message)s",
        }
        if self.args.log in forms or self.args.manner in {"logged", "short", "tries"}:
            logging.basicConfig(level=logging.INFO, format=forms.get(self.args.log, "%(levelname)s:%(name)s:%(message)s"), stream=sys.stderr)
        self.logger = logging.getLogger("trainer" if self.world == 1 else f"trainer.{self.rank}")
        if self.args.manner == "hook":
            sys.excepthook = self._as_json

    @property
    def mine(self):
        """Whether this rank is one that matters."""
        return self.args.who < 0 or self.rank == self.args.who % self.world

    def _as_json(self, kind, value, trace):
        text = "".join(traceback.format_exception(kind, value, trace))
        print(json.dumps({"ts": round(time.time(), 3), "severity": "CRITICAL", "rank": self.rank, "exception": text}), file=sys.stderr)

    def say(self, text):
        """One line in the job's style."""
        style = self.args.log
        if style == "quiet" or (self.rank and style not in {"rank", "json", "logging"}):
            return
        if style in {"logging", "hydra", "loguru", "syslog"}:
            self.logger.info(text)
        elif style == "json":
            print(json.dumps({"ts": round(time.time(), 3), "severity": "INFO", "rank": self.rank, "message": text}))
        elif style == "glog":
            now = time.time()
            print(time.strftime("I%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d} {os.getpid()} fit.py:52] {text}", file=sys.stderr)
        elif style == "rank":
            print(f"[{time.strftime('%H:%M:%S')}] (rank {self.rank}/{self.world}) {text}")
        else:
            print(text)

    def banner(self):
        """What jobs print before they train."""
        if self.draw.random() < 0.5:
            self.say(f"config: {vars(self.args)}")
        self.say(f"training on {self.name} with {self.world} process{'es' if self.world > 1 else ''}, numpy {np.__version__}")
        if self.args.noise > 0:
            self.say(f"found {self.draw.randint(2000, 900000)} samples in {self.draw.randint(2, 64)} shards")
        if self.args.noise > 1:
            warnings.warn("the option `amp_level` is deprecated and will be removed in a later release; use `precision`", DeprecationWarning, stacklevel=2)
            warnings.simplefilter("always")
            warnings.warn("num_workers is above the number of cores; data loading may be slow", UserWarning, stacklevel=2)
        if self.args.noise > 2:
            self._tracker()

    def _tracker(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            for attempt in (1, 2, 3):
                try:
                    socket.create_connection(server.getsockname(), 0.5).close()
                except OSError as error:
                    self.say(f"tracker: attempt {attempt} of 3: {error}; trying again")
                    server.listen()
                else:
                    self.say("tracker: connected, run is being recorded")
                    break

    def meet(self, value):
        """The sum of all ranks' values; ranks talk over sockets at MASTER_PORT."""
        if self.world == 1:
            return value
        address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
        if self.hub is None and self.rank == 0:
            self.hub = multiprocessing.connection.Listener(address)
            self.spokes = [self.hub.accept() for _ in range(self.world - 1)]
        elif self.hub is None:
            for _ in range(400):
                try:
                    self.hub = multiprocessing.connection.Client(address)
                    break
                except OSError:
                    time.sleep(0.02)
        if self.rank == 0:
            total = value + sum(spoke.recv() for spoke in self.spokes)
            for spoke in self.spokes:
                spoke.send(total)
            return total
        self.hub.send(value)
        return self.hub.recv()

    def step(self, number):
        """One gradient step; the loss."""
        x = self.rng.normal(size=(8, 16))
        wrong = x @ self.weights - x.sum(axis=1)
        self.weights -= 0.02 * self.meet(x.T @ wrong / 8) / self.world
        loss = float((wrong**2).mean())
        self.report(number, loss)
        if self.args.pause:
            time.sleep(self.args.pause)
        return loss

    def report(self, number, loss):
        """The step's line in the job's style."""
        style, total = self.args.log, self.args.steps
        if number % self.args.every or (self.rank and style not in {"rank", "json", "logging"}):
            return
        if style == "tqdm":
            filled = int(24 * number / total)
            print(f"\rfit: {100 * number // total:3d}%|{'#' * filled}{' ' * (24 - filled)}| {number}/{total} [00:0{number % 6}<00:1{number % 9}, {self.draw.uniform(30, 60):.2f}it/s, loss={loss:.3f}]", end="", file=sys.stderr)
        elif style == "json":
            print(json.dumps({"ts": round(time.time(), 3), "rank": self.rank, "step": number, "loss": round(loss, 5)}))
        elif style == "csv":
            print(f"{number},{loss:.5f},{self.draw.uniform(0.8, 1.2):.3f}")
        elif style == "bars":
            print(f"Epoch 1/3 - {number + 1}/{total} {'━' * (number * 20 // total)} loss: {loss:.4f} - mae: {loss**0.5:.4f}")
        elif style != "quiet":
            self.say(f"step {number:4d} | loss {loss:.4f} | {self.draw.uniform(700, 1300):.0f} examples/s")
        if self.args.noise > 1 and number and number % 20 == 0:
            self.say(f"wrote checkpoint step-{number:05d}.npz")

    def train(self, until=None):
        """Steps up to that one (default: the one that matters)."""
        loss = 0.0
        for number in range(self.at if until is None else until):
            loss = self.step(number)
        return loss

    def run(self, fault):
        """Banner, steps, then `fault(job)` in the manner asked for, then the remaining steps."""
        global CURRENT
        CURRENT, self.fault = self, fault
        self.banner()
        self.train()
        if self.args.log == "tqdm":
            print(file=sys.stderr)
        if self.mine:
            getattr(self, f"_{self.args.manner}")()
        for number in range(self.at, self.args.steps):
            self.step(number)
        self.say("done")

    def _plain(self):
        _call()

    _hook = _plain

    def _nested(self):
        def prepare_batch(level):
            return prepare_batch(level - 1) if level else _call()

        def fetch():
            return prepare_batch(2)

        list(map(lambda _: fetch(), range(2)))

    def _logged(self):
        try:
            _call()
        except Exception:
            self.logger.exception("run %s stopped at step %d", self.name, self.at)
            sys.exit(1)

    def _short(self):
        try:
            _call()
        except Exception as error:
            self.logger.error("%s: %s", type(error).__name__, error)
            sys.exit(1)

    def _wrapped(self):
        try:
            _call()
        except Exception as error:
            raise RuntimeError(f"{self.name}: worker {self.rank} gave up in epoch {self.at // 10}") from error

    def _tries(self):
        for attempt in range(3):
            try:
                return _call()
            except Exception as error:
                self.logger.warning("attempt %d/3: %r", attempt + 1, error)
                time.sleep(0.01)
                if attempt == 2:
                    raise
        return None

    def _thread(self):
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="prefetch") as pool:
            pool.submit(_call).result()

    def _pool(self):
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.apply(_call)

    def _async(self):
        async def main():
            await asyncio.gather(asyncio.sleep(0.01), asyncio.to_thread(_call))

        asyncio.run(main())
