"""Rounds of `tests.flows.crashes` with further faults: a frozen broker, a partition, a jump of the clock."""

import random
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.flows.crashes import Publisher, Report, Round, Stored, Worker, until

FAKETIME: Final = "libfaketime.so.1"
JUMPS: Final = ("+1h", "-1h", "+0")
# Faults and how often each is drawn. A broker or database takes seconds to come back, a member less than one.
FAULTS: Final = {
    "member": 30,
    "worker": 20,
    "broker": 10,
    "database": 15,
    "frozen broker": 10,
    "partition": 10,
    "clock": 5,
}


def faketime_library() -> Path | None:
    """The library that changes the clock of a program; None if it is not installed."""
    return next(iter(sorted(Path("/usr/lib").glob(f"*/faketime/{FAKETIME}"))), None)


def drawn(seed: int, count: int, *, isolated: bool) -> list[str]:
    """So many faults; the same seed gives the same.

    Args:
        seed: of the draw.
        count: number of faults.
        isolated: whether this process has a network of its own, which it may partition.
    """
    possible = {name: weight for name, weight in FAULTS.items() if isolated or name != "partition"}
    if faketime_library() is None:
        del possible["clock"]
    return random.Random(seed).choices(list(possible), list(possible.values()), k=count)


class ChaosRound(Round):
    """A round whose plan may name every fault of `FAULTS`."""

    def _make(
        self,
        trouble: str,
        worker: Worker,
        rng: random.Random,
        report: Report,
        publisher: Publisher,
        stored: Stored,
    ) -> None:
        if trouble == "frozen broker":
            self._count(trouble, report, publisher, stored)
            with self.broker.frozen():
                time.sleep(rng.uniform(1, 6))
        elif trouble == "partition":
            self._count(trouble, report, publisher, stored)
            partition(rng.uniform(1, 8))
        elif trouble == "clock":
            self._count(trouble, report, publisher, stored)
            given = worker.given()
            worker.restart_with(clock(rng.choice(JUMPS)))
            until(lambda: worker.given() > given, "the worker is back with another clock", worker)
        else:
            super()._make(trouble, worker, rng, report, publisher, stored)  # type: ignore[arg-type]

    def _count(self, trouble: str, report: Report, publisher: Publisher, stored: Stored) -> None:
        report.in_hand += publisher.events() > stored.count()
        report.kills[trouble] += 1


def clock(jump: str) -> dict[str, str]:
    """The environment of a program whose clock is off by `jump`; intervals stay right."""
    return {"LD_PRELOAD": str(faketime_library()), "FAKETIME": jump, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def partition(seconds: float) -> None:
    """Cut all connections of this network for some time; nothing gets through, and nobody is notified."""
    _loopback("down")
    time.sleep(seconds)
    _loopback("up")


def _loopback(state: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", state], check=True, timeout=10)


def in_own_network(command: Sequence[str]) -> list[str]:
    """The command with a network of its own, which has a loopback device only."""
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]
