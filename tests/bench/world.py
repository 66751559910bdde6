"""Generates a fleet's failures from a seed, as rows of the database tables, with a realistic skew of their kinds.

The shares are invented; only their distribution matters. The texts of a failure (evidence, log, words) are those of
its kind and at most 512 bytes, so that three million failures are generated in a minute.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from classifiers import taxonomy
from classifiers.contracts import LogStream
from service.contracts.verdict import EvidenceLine
from service.failures.repository.search import split_words
from service.sql.packing import pack, pack_streams
from tests.bench.workload import SYLLABLES

CLUSTERS, QUEUES, TEAMS, USERS, NODES = 5, 12, 30, 600, 2_000
KIND_EVERY = 150  # average number of failures of each kind
SUCCEEDED_EVERY = 2  # number of failed jobs per successful job
CATEGORIES = ("DL.1", "DL.2", "EE.1", "EE.2", "EE.3", "GC.1", "GC.3")
SYMPTOMS = ("A.1", "A.2", "B.1", "C.3")
STATUSES = ("failed",) * 8 + ("timeout", "hung")
JOBS = (
    *("id", "event_id", "digest", "cluster", "job_id", "attempt", "status", "name", "user_name", "team", "queue"),
    *("gpus", "nodes", "started_at", "ended_at", "received_at", "clock_suspect", "counted", "gpu_hours_lost"),
    "failure_id",
)
FAILURES = (
    *("id", "cluster", "status", "user_name", "team", "queue", "ended_at", "gpu_hours_lost", "counted", "version"),
    *("source", "side", "cause", "category", "symptom", "platform_symptom", "confidence", "abstained"),
    *("retry_outlook", "fingerprint", "decision", "resubmit", "headline", "suspect_node", "suspect_rank"),
)
FAILURE_NODES = ("failure_id", "node", "ended_at")
VERDICTS = ("failure_id", "version", "at", "source", "model", "rules", "policy", "body")
LOGS = ("failure_id", "attempt_id", "event")
LOG_BODIES = ("failure_id", "attempt_id", "ended_at", "streams")

Row = tuple[Any, ...]

# What every event has; pages show the columns of the job, and of its event what has no column.
END = {"cluster": "c0", "job_id": "1", "status": "failed", "ended_at": "2026-11-01T00:00:00Z"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of failure: the content of its rows except user, job and node."""

    fields: Row
    confidence: float
    fingerprint: str
    headline: str
    words: str
    body: bytes
    event: bytes
    streams: bytes | None
    resubmit: bool


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of some failures by table, and their texts by failure."""

    jobs: list[Row]
    failures: list[Row]
    failure_nodes: list[Row]
    verdicts: list[Row]
    logs: list[Row]
    log_bodies: list[Row]
    words: list[tuple[int, str]]


def kinds(count: int, rng: random.Random) -> list[Kind]:
    """Return this number of kinds, with the sides distributed about as in published fleet reports."""
    causes = sorted(taxonomy.load().causes)
    made = []
    for number in range(count):
        cause = causes[min(int(rng.random() ** 1.5 * len(causes)), len(causes) - 1)]
        names = ["".join(rng.choices(SYLLABLES, k=3)) for _ in range(8)]
        line = f"RuntimeError: {names[0]} {names[1]} failed in {names[2]}_{number}: {names[3]} exhausted"
        log = f"step 41 {names[4]} loaded\nworker {names[5]}.{names[6]}\n{line}\nsrun: error: {names[7]} terminated"
        made.append(_kind(number, taxonomy.load().side_of(cause), cause, line, log[:500], rng))
    return made


def _kind(number: int, side: str, cause: str, line: str, log: str, rng: random.Random) -> Kind:
    abstained = number % 20 == 0
    resubmit = side != "user" and number % 3 > 0
    fingerprint = f"1:{blake2b(str(number).encode(), digest_size=16).hexdigest()}"
    category = CATEGORIES[number % len(CATEGORIES)] if side == "user" else None
    symptom = SYMPTOMS[number % len(SYMPTOMS)] if number % 3 == 0 else None
    confidence = round(0.5 + rng.random() / 2, 3)
    decision = "resubmit_now" if resubmit else "stop"
    verdict = {
        "schema": "verdict/1",
        "side": side,
        "cause": cause,
        "cause_top": [cause],
        "category": category,
        "symptom": symptom,
        "symptom_top": [],
        "platform_symptom": "crash",
        "confidence": confidence,
        "abstained": abstained,
        "evidence": [EvidenceLine(text=line, role="initiating", stream="stderr", rank=0, line=3).model_dump()],
        "suspect": {"rank": 0, "node": None, "gpu": None},
        "fingerprint": fingerprint,
        "decision": decision,
        "resubmit": resubmit,
        "retry_outlook": "helps" if resubmit else "futile",
        "explanation": "Made up to be counted.",
        "reasons": ["the budget is not used up"],
        "mitigations": [{"code": "M1", "score": 0.5, "text": "Made up to be counted."}],
        "event_id": f"kind-{number}",
        "cluster": "c0",
        "job_id": f"kind-{number}",
        "attempt": 0,
        "missing": [],
        "progress": None,
        "exclude_nodes": [],
        "rule": "budget",
        "mode": "advise",
        "action": None,
        "incident": None,
        "held_by": None,
        "ask_whom": None,
        "changes": {},
        "figures": {},
        "weighed": [],
        "disputed": False,
        "context": [],
        "log_said": None,
        "model": "bench 1",
        "rules": "bench 1",
        "policy": "bench 1",
    }
    return Kind(
        (side, cause, category, symptom, "crash", confidence, abstained, verdict["retry_outlook"]),
        confidence,
        fingerprint,
        line[:300],
        " ".join(split_words(line)),
        pack(verdict),
        pack({**END, "name": f"train-{number % 97}"}),
        pack_streams((LogStream(log, rank=0, node="gpu0001", windows=((0, log.count("\n")),)),)),
        resubmit,
    )


def rows(
    count: int, newest: datetime, days: float, *, seed: int = 1, bite: int = 20_000, kept_logs: timedelta
) -> Iterator[Rows]:
    """Yield `count` failures that ended in the `days` before `newest`, oldest first, with successful jobs between them.

    Whole log texts are included only for failures that ended within `kept_logs` of the newest.
    """
    rng = random.Random(seed)
    known = kinds(max(count // KIND_EVERY, 40), rng)
    step = timedelta(days=days) / count
    made, row_id = Rows([], [], [], [], [], [], []), 0
    for number in range(count):
        row_id += 1
        at = newest - step * (count - number)
        _failure(made, row_id, at, known[int(rng.random() ** 3 * len(known))], rng, whole=newest - at < kept_logs)
        if number % SUCCEEDED_EVERY == 0:
            row_id += 1
            made.jobs.append(_job(row_id, "succeeded", at, _who(rng), 0.0, None))
        if len(made.failures) >= bite:
            yield made
            made = Rows([], [], [], [], [], [], [])
    yield made


@dataclass(frozen=True, slots=True)
class _Who:
    user: int
    node: int
    gpus: int
    minutes: int


def _who(rng: random.Random) -> _Who:
    return _Who(
        int(rng.random() ** 2 * USERS), int(rng.random() ** 1.3 * NODES), rng.choice((1, 8, 8, 64)), rng.randint(1, 600)
    )


def _job(row_id: int, status: str, at: datetime, who: _Who, lost: float, failure_id: int | None) -> Row:
    return (
        row_id,
        f"event-{row_id}",
        row_id.to_bytes(16, "big"),
        f"c{who.node % CLUSTERS}",
        str(row_id),
        0,
        status,
        f"train-{who.user % 97}",
        f"user{who.user}",
        f"team{who.user % TEAMS}",
        f"queue{who.minutes % QUEUES}",
        who.gpus,
        f'["gpu{who.node:04d}"]',
        at - timedelta(minutes=who.minutes),
        at,
        at + timedelta(seconds=2),
        False,
        True,
        lost,
        failure_id,
    )


def _failure(made: Rows, row_id: int, at: datetime, kind: Kind, rng: random.Random, *, whole: bool) -> None:
    who = _who(rng)
    lost = who.gpus * who.minutes / 60
    job = _job(row_id, rng.choice(STATUSES), at, who, lost, row_id)
    node = f"gpu{who.node:04d}"
    made.jobs.append(job)
    made.failures.append(
        (
            row_id,
            job[3],
            *job[6:7],
            *job[8:11],
            at,
            lost,
            True,
            1,
            "machine",
            *kind.fields,
            kind.fingerprint,
            "resubmit_now" if kind.resubmit else "stop",
            kind.resubmit,
            kind.headline,
            node if kind.fields[0] == "hardware" else None,
            0,
        )
    )
    made.failure_nodes.append((row_id, node, at))
    made.verdicts.append((row_id, 1, at + timedelta(seconds=5), "machine", "bench 1", "bench 1", "bench 1", kind.body))
    made.logs.append((row_id, row_id, kind.event))
    if whole:
        made.log_bodies.append((row_id, row_id, at, kind.streams))
    made.words.append((row_id, kind.words))


def columns() -> dict[str, Sequence[str]]:
    """Return the columns of each table's rows."""
    return {
        "jobs": JOBS,
        "failures": FAILURES,
        "failure_nodes": FAILURE_NODES,
        "verdicts": VERDICTS,
        "logs": LOGS,
        "log_bodies": LOG_BODIES,
    }
