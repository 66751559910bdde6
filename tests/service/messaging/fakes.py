"""A database, a clock, a dead-letter topic and a reader of records that do as they are told."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from service.contracts.event import JobCompletion, from_object
from service.dead_letters.records import DeadLetter
from service.errors import Unavailable, UnreadableRecord
from service.formats.field_reading import Skipped
from service.messaging.batch_result import BatchOutcome, EventOutcome
from service.messaging.dead_letters import Rejected
from service.messaging.record import Headers


class Clock:
    """Moves only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class StopWhen:
    """Ends the run once `done` says so; waiting moves the clock. Gives up after so many questions."""

    def __init__(self, clock: Clock, done: Callable[[], bool], patience: int = 2_000) -> None:
        self.clock = clock
        self.done = done
        self.patience = patience
        self.asked = 0

    def is_set(self) -> bool:
        self.asked += 1
        assert self.asked < self.patience, "the consumer did not get there"
        return self.done()

    def wait(self, timeout: float | None = None) -> bool:
        self.clock.sleep(timeout or 0.0)
        return self.is_set()


class Database:
    """Stores events by key and dead letters by place, all of a batch or nothing; `down` batches long it is away."""

    def __init__(self) -> None:
        self.events: dict[str, JobCompletion] = {}
        self.letters: dict[tuple[str, str], DeadLetter] = {}
        self.batches: list[int] = []
        self.down = 0
        self.poison: Callable[[JobCompletion], bool] = lambda _event: False
        self.before: Callable[[], None] = lambda: None

    def __call__(self, events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        self.before()
        if self.down > 0:
            self.down -= 1
            raise Unavailable("the database does not answer")
        for event in events:
            if self.poison(event):
                raise ValueError(f"secret-token-of-{event.job_id}")
        outcomes = []
        for event in events:
            known = event.key() in self.events
            self.events.setdefault(event.key(), event)
            outcomes.append(EventOutcome("duplicate" if known else "accepted", event.key()))
        for letter in dead:
            self.letters.setdefault((letter.place, letter.sha256), letter)
        self.batches.append(len(events))
        return BatchOutcome(tuple(outcomes), tuple(range(len(dead))))

    def jobs(self) -> set[str]:
        return {event.job_id for event in self.events.values()}

    def places(self) -> set[str]:
        return {place for place, _ in self.letters}


class DeadLetterTopic:
    """Keeps what is sent; the first `down` sends fail."""

    def __init__(self) -> None:
        self.sent: list[Rejected] = []
        self.down = 0

    def send(self, rejected: Sequence[Rejected]) -> None:
        if self.down > 0:
            self.down -= 1
            raise Unavailable("the broker does not answer")
        self.sent += rejected

    def places(self) -> set[str]:
        return {one.record.place for one in self.sent}


def parse(value: bytes | None, headers: Headers = (), *, cluster: str | None = None) -> JobCompletion | Skipped:
    """The native event; {"skip": true} and deletion markers are no ends of jobs."""
    del headers
    if value is None:
        return Skipped("deletion marker")
    try:
        found = json.loads(value)
    except ValueError:
        raise UnreadableRecord("not JSON") from None
    if not isinstance(found, dict):
        raise UnreadableRecord("not an object")
    if found.get("skip"):
        return Skipped("a start record")
    if found.get("crash"):
        raise RuntimeError("a fault in the reader")
    return from_object({"cluster": cluster, **found})


def event(job_id: str, **fields: Any) -> bytes:
    """A finished job as bytes."""
    return json.dumps({"job_id": job_id, "status": "failed", "ended_at": "2026-11-20T03:41:57Z", **fields}).encode()
