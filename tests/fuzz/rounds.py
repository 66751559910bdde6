"""Sends mutated records through the real consumer and checks from outside the outcome of each."""

import hashlib
import logging
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from service import compose
from service.contracts.event import JobCompletion
from service.formats import recognise
from service.formats.field_reading import Skipped
from service.messaging import batching
from service.messaging.dead_letters import Rejected
from service.messaging.record import Headers, TopicPartition
from service.settings import Settings
from service.signatures import reloading_diagnoser
from tests.fuzz.mutations import Mutator
from tests.service.messaging.memory_source import MemoryBroker, MemorySource

TOPIC, CLUSTER, PARTITIONS = "fuzz", "fuzz", 3
ROUND = 5_000  # records between two checks
COPIES = 0.05  # share of records that are sent twice
HEADERS: tuple[Headers, ...] = (
    (("content-type", b"application/json"),),
    (("content-type", b"application/cloudevents+json"),),
    (("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/x"), ("ce_type", b"job.ended")),
    (("\ufffd", b"\xff\x00"),),
)


@dataclass
class Result:
    """Counts of records by outcome, and everything that contradicts an invariant."""

    records: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    resident_kib: list[int] = field(default_factory=list)

    def text(self) -> str:
        """The result for people."""
        counts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{self.records:,} records: {counts}\nwrong: {self.wrong or 'nothing'}"


@dataclass
class _Sent:
    """What the records of a round have to result in."""

    keys: set[str] = field(default_factory=set)
    letters: Counter[tuple[str, str]] = field(default_factory=Counter)  # place, SHA-256
    skipped: int = 0


class _Topic:
    """Keeps place and digest of each dead letter."""

    def __init__(self) -> None:
        self.letters: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []

    def send(self, rejected: Sequence[Rejected]) -> None:
        for one in rejected:
            self.letters[one.record.place, hashlib.sha256(one.record.value or b"").hexdigest()] += 1
            if one.letter.reason.startswith(("could not be handled", "reading failed")):
                self.faults.append(f"{one.letter.reason}: {(one.record.value or b'')[:2_000]!r}")


class _Errors(logging.Handler):
    """Keeps what the classifier logs: it does so only where an error in it costs a verdict its logs."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._wrong = wrong

    def emit(self, record: logging.LogRecord) -> None:
        self._wrong.append(self.format(record))


class _Until:
    """A shutdown flag that is set once everything is committed."""

    def __init__(self, done: Callable[[], bool]) -> None:
        self._done = done
        self._never = threading.Event()

    def is_set(self) -> bool:
        return self._done()

    def wait(self, timeout: float | None = None) -> bool:
        self._never.wait(timeout)
        return self._done()


class Fuzz:
    """Runs rounds of records on one SQLite database.

    Args:
        folder: for the database.
        seed: of records and order.
        model_dir: the trained model.
        result: is added to.
    """

    def __init__(self, folder: Path, seed: int, model_dir: Path, result: Result | None = None) -> None:
        self._file = folder / "fuzz.sqlite3"
        url = f"sqlite:///{self._file}"
        self._settings = Settings.model_validate(
            {"database_url": url, "model_dir": model_dir, "dead_letter_limit": 10**9, "log_deadline_s": 5}
        )
        self._services = compose.build(self._settings)
        self._services.store.upgrade()
        self._mutator = Mutator(seed)
        self._rng = random.Random(seed)
        self._keys: set[str] = set()
        self._rounds = 0
        self.result = result or Result()
        self._errors = _Errors(self.result.wrong)
        reloading_diagnoser.log.addHandler(self._errors)

    def run(self, records: int, size: int = ROUND) -> Result:
        """Send so many records in rounds of `size`; check after each."""
        for begin in range(0, records, size):
            self._round(min(size, records - begin))
        return self.result

    def close(self) -> None:
        """Close the database."""
        reloading_diagnoser.log.removeHandler(self._errors)
        self._services.close()

    def _round(self, size: int) -> None:
        self._rounds += 1
        topic = f"{TOPIC}{self._rounds}"  # places of dead letters differ between rounds
        broker = MemoryBroker({topic: PARTITIONS}, {topic: CLUSTER})
        sent = _Sent()
        for _ in range(size):
            value: bytes | None = None if self._rng.random() < 0.01 else self._mutator.record()
            headers = self._rng.choice(HEADERS) if self._rng.random() < 0.05 else ()
            for _ in range(2 if self._rng.random() < COPIES else 1):
                place = TopicPartition(topic, self._rng.randrange(PARTITIONS))
                self._expect(sent, place, broker.put(place, value, headers=headers), value, headers)
        dead = _Topic()
        consumer = self._services.consumer_of(MemorySource(broker, "fuzz", [topic]), dead)
        consumer.run(_Until(lambda: all(broker.committed(at) == len(log) for at, log in broker.logs.items() if log)))
        self.result.records += size
        self._check(sent, dead)
        self.result.resident_kib.append(resident_kib())

    def _expect(self, sent: _Sent, place: TopicPartition, offset: int, value: bytes | None, headers: Headers) -> None:
        found = batching.read(recognise.parse, value, headers, cluster=CLUSTER, source=f"topic/{place.topic}")
        if isinstance(found, JobCompletion):
            sent.keys.add(found.key())
            self.result.outcomes["events with problems" if found.intake_problems else "events"] += 1
        elif isinstance(found, Skipped):
            sent.skipped += 1
            self.result.outcomes["skipped"] += 1
        else:
            where = f"{place.topic}/{place.partition}/{offset}"
            sent.letters[where, hashlib.sha256(value or b"").hexdigest()] += 1
            self.result.outcomes["dead letters"] += 1

    def _check(self, sent: _Sent, dead: _Topic) -> None:
        self.result.wrong += dead.faults
        if dead.letters - sent.letters or sent.letters - dead.letters:
            self.result.wrong.append(f"round {self._rounds}: dead letters on the topic differ from unreadable records")
        before = len(self._keys)
        self._keys |= sent.keys
        with closing(sqlite3.connect(self._file)) as connection:
            stored = [str(key) for (key,) in connection.execute("SELECT event_id FROM jobs")]
            letters = Counter(
                connection.execute(
                    "SELECT place, sha256 FROM dead_letters WHERE place LIKE ?", (f"{TOPIC}{self._rounds}/%",)
                ).fetchall()
            )
            unjudged = connection.execute(
                "SELECT count(*) FROM failures f WHERE NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.failure_id = f.id)"
            ).fetchone()[0]
        if len(stored) != len(set(stored)) or set(stored) != self._keys:
            lost, extra = len(self._keys - set(stored)), len(set(stored) - self._keys)
            self.result.wrong.append(
                f"round {self._rounds}: {lost} events lost, {extra} too many, {len(stored) - len(set(stored))} doubled"
            )
        if letters != sent.letters:
            self.result.wrong.append(f"round {self._rounds}: dead letters in the database differ")
        if unjudged:
            self.result.wrong.append(f"round {self._rounds}: {unjudged} failures without a verdict")
        self.result.outcomes["distinct events stored once"] += len(self._keys) - before


def resident_kib() -> int:
    """The resident memory of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:", 1)[1].split()[0])
