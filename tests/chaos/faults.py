"""Rounds of `tests.flows.crashes` with further faults: a frozen broker, a partition, a jump of the clock."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final

import psycopg

from service.errors import NotFound, Unavailable
from service.log_storage import build as log_storage
from service.log_storage.options import LogStorageOptions
from service.sql.packing import unpack
from service.telemetry import Telemetry
from tests.chaos.plans import Report
from tests.flows.crashes import Publisher, Round, Stored, Worker, until
from tests.labs.object_storage import S3Server

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
RIGHT: Final = ("in the bucket", "in the database", "without a row")  # the last: retention removes them by day
LOG_STORAGE: Final = 20  # where logs are in a bucket


def faketime_library() -> Path | None:
    """The library that changes the clock of a program; None if it is not installed."""
    return next(iter(sorted(Path("/usr/lib").glob(f"*/faketime/{FAKETIME}"))), None)


def drawn(seed: int, count: int, *, isolated: bool, log_storage: bool = False) -> list[str]:
    """So many faults; the same seed gives the same.

    Args:
        seed: of the draw.
        count: number of faults.
        isolated: whether this process has a network of its own, which it may partition.
        log_storage: whether logs are in a bucket, whose server may be stopped.
    """
    possible = {name: weight for name, weight in FAULTS.items() if isolated or name != "partition"}
    if faketime_library() is None:
        del possible["clock"]
    if log_storage:
        possible["log storage"] = LOG_STORAGE
    return random.Random(seed).choices(list(possible), list(possible.values()), k=count)


@dataclass
class ChaosRound(Round):
    """A round whose plan may name every fault of `FAULTS`, and "log storage" if there is a server."""

    log_storage: S3Server | None = None

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
            with self.broker.frozen():
                time.sleep(rng.uniform(1, 6))
        elif trouble == "partition":
            partition(rng.uniform(1, 8))
        elif trouble == "clock":
            given = worker.given()
            worker.restart_with(clock(rng.choice(JUMPS)))
            until(lambda: worker.given() > given, "the worker is back with another clock", worker)
        elif trouble == "log storage" and self.log_storage is not None:
            self.log_storage.stop()
            time.sleep(rng.uniform(1, 6))
            self.log_storage.start()
        else:
            super()._make(trouble, worker, rng, report, publisher, stored)  # type: ignore[arg-type]

    def _look(self, url: str, events: Sequence[dict[str, object]], report: Report) -> None:
        super()._look(url, events, report)
        if self.log_storage is None:
            return
        counts = stored_logs(url, self.plan.settings["FAULTLINE_LOG_STORE_URL"], events)
        report.wrong += [f"{count} logs {what}" for what, count in counts.items() if what not in RIGHT and count]
        report.notes = ", ".join(f"{count} logs {what}" for what, count in sorted(counts.items()))


def stored_logs(url: str, storage: str, events: Sequence[dict[str, object]]) -> Counter[str]:
    """Where the logs of the failed jobs are, and how many are not the text that was sent or cannot be read."""
    sent = {str(one["job_id"]): logs[0]["tail"] for one in events if isinstance(logs := one.get("logs"), list)}
    storage_of_logs = log_storage.build(LogStorageOptions(storage, allow_http=True), Telemetry())
    counts: Counter[str] = Counter()
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT j.job_id, l.streams FROM log_bodies l JOIN jobs j ON j.id = l.attempt_id"
        ).fetchall()
    for job, column in rows:
        counts["in the bucket" if isinstance(unpack(column), dict) else "in the database"] += 1
        try:
            [stream] = storage_of_logs.read(column)
        except (NotFound, Unavailable):
            counts["unreadable"] += 1
            continue
        counts["that are not as sent"] += stream.text.strip() != sent[job].strip()
    counts["without a row"] = storage_of_logs.remove_before(date.max) - counts["in the bucket"]
    return counts


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
