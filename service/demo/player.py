"""Plays the bundled stream: a day's backlog at once, then its last hour again and again as it would come in."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any

import orjson
import zstandard

from service.clock import Clock
from service.ingest.memory_source import MemoryBroker
from service.kafka.record import Place

TOPIC = "demo"
PARTITIONS = 3
LIVE_EVERY_S = 20.0


def stream() -> list[dict[str, Any]]:
    """The bundled job completions, oldest first, times counted back from the moment they are played."""
    packed = files("service.demo").joinpath("stream.jsonl.zst").read_bytes()
    return [orjson.loads(line) for line in zstandard.ZstdDecompressor().decompress(packed).splitlines()]


def at(job: Mapping[str, Any], ended: datetime) -> bytes:
    """One job completion that ended then, as its scheduler would publish it."""
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
        """Put the whole day, ending now; returns how many."""
        now = self._clock.now()
        for job in self._jobs:
            self._send(at(job, now - timedelta(seconds=job["ended_ago_s"])))
        return self._put

    def live(self, stop: threading.Event) -> None:
        """One job after the other as new ones, until stopped."""
        number = 900_000
        while True:
            for job in reversed(self._jobs):
                if stop.wait(LIVE_EVERY_S):
                    return
                number += 1
                self._send(at(job | {"job_id": str(number)}, self._clock.now()))

    def _send(self, value: bytes) -> None:
        self._broker.put(Place(TOPIC, self._put % PARTITIONS), value)
        self._put += 1
