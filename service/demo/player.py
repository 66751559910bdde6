"""Plays the bundled stream: four weeks at once, then its jobs repeatedly as new ones."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

import orjson
import zstandard

from service.clock import Clock
from service.messaging.memory_source import MemoryBroker
from service.messaging.record import TopicPartition

TOPIC = "demo"
PARTITIONS = 3
LIVE_EVERY_S = 20.0


def stream() -> list[dict[str, Any]]:
    """Return the bundled job completions, oldest first, with times relative to the moment of playing."""
    packed = files("service.demo").joinpath("stream.jsonl.zst").read_bytes()
    cases: list[tuple[bytes, list[str]]] = []
    jobs: list[dict[str, Any]] = []
    for line in zstandard.ZstdDecompressor().decompress(packed).splitlines():
        entry = orjson.loads(line)
        if "job" not in entry:
            cases.append((orjson.dumps(entry["case"]), entry["nodes"]))
        elif entry["case"] is None:
            jobs.append(entry["job"])
        else:
            jobs.append(_on(entry["job"], *cases[entry["case"]]))
    return jobs


def _on(job: dict[str, Any], content: bytes, nodes: list[str]) -> dict[str, Any]:
    """Return a failed job with its log, in which node names are replaced by those of the job."""
    for old, new in zip(nodes, job["nodes"], strict=False):
        content = content.replace(old.encode(), new.encode())
    found: dict[str, Any] = orjson.loads(content)
    return found | job


def at(job: Mapping[str, Any], ended: datetime) -> bytes:
    """Return a job completion that ended at `ended`, as a scheduler would publish it."""
    event = {name: value for name, value in job.items() if name not in {"ended_ago_s", "ran_s"}}
    started = ended - timedelta(seconds=job["ran_s"])
    event |= {"schema": "job-completion/1", "started_at": started.isoformat(), "ended_at": ended.isoformat()}
    return orjson.dumps(event)


class Player:
    """Puts job completions on a topic in memory."""

    def __init__(self, broker: MemoryBroker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._jobs = stream()
        self._put = 0

    def backlog(self) -> int:
        """Publish the whole stream, ending now; return the number of jobs."""
        now = self._clock.now()
        for job in self._jobs:
            self._send(at(job, now - timedelta(seconds=job["ended_ago_s"])))
        return self._put

    def live(self, stop: threading.Event) -> None:
        """Publish one job after another as new ones, until stopped."""
        number = 900_000
        while True:
            for job in reversed(self._jobs):
                if stop.wait(LIVE_EVERY_S):
                    return
                number += 1
                self._send(at(job | {"job_id": str(number)}, self._clock.now()))

    def _send(self, value: bytes) -> None:
        self._broker.put(TopicPartition(TOPIC, self._put % PARTITIONS), value)
        self._put += 1
