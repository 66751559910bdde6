"""Rows for tests with plausible defaults."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from classifiers.contracts import LogStream
from service.db.session import Store
from service.failures.records import NewFailure
from service.jobs.records import JobOutcome, NewJob

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def job(event_id: str, **changes: Any) -> NewJob:
    """A failed, diagnosed attempt of job `event_id` on cluster orion, an hour long on 4 GPUs."""
    plain = NewJob(
        event_id=event_id,
        digest=b"digest of content",
        cluster="orion",
        job_id=event_id,
        status="failed",
        ended_at=NOON,
        received_at=NOON + timedelta(seconds=1),
        started_at=NOON - timedelta(hours=1),
        gpus=4,
        gpu_hours_lost=4.0,
        user="ana",
        team="vision",
        queue="gpu-long",
        nodes=("gpu1", "gpu2"),
        diagnosed=True,
    )
    return replace(plain, **changes)


def succeeded(event_id: str, **changes: Any) -> NewJob:
    """A successful attempt, without a verdict."""
    return job(event_id, **{"status": "succeeded", "diagnosed": False, "gpu_hours_lost": 0.0, **changes})


def verdict(**changes: Any) -> dict[str, Any]:
    """verdict/1 of a missing file."""
    plain: dict[str, Any] = {
        "schema": "verdict/1",
        "side": "user",
        "cause": "USER.1",
        "cause_top": ["USER.1", "USER.2"],
        "category": "5.1",
        "symptom": None,
        "symptom_top": [],
        "platform_symptom": "crash",
        "confidence": 0.9,
        "abstained": False,
        "evidence": [
            {"rank": 1, "node": "gpu2", "stream": "stderr", "line": 9, "text": "Terminating", "role": "teardown"},
            {
                "rank": 0,
                "node": "gpu1",
                "stream": "stderr",
                "line": 7,
                "text": "FileNotFoundError: /data/train/index.json",
                "role": "initiating",
            },
        ],
        "suspect": {"rank": 0, "node": "gpu1", "gpu": None},
        "fingerprint": "v1:abc",
        "decision": "stop",
        "resubmit": False,
        "retry_outlook": "futile",
        "explanation": "A file is missing.",
        "model": "m1",
        "rules": "r1",
        "policy": "p1",
    }
    return plain | changes


STREAMS = (LogStream("loading\nFileNotFoundError: /data/train/index.json", rank=0, node="gpu1", windows=((0, 6),)),)


def put(store: Store, jobs: Sequence[NewJob], **changes: Any) -> list[JobOutcome]:
    """Store attempts, and a failure for each that opens one; `changes` go into their verdicts."""
    with store.unit_of_work() as work:
        outcomes = work.jobs.add(jobs)
        work.failures.add(
            [
                NewFailure(outcome, given, verdict(**changes), STREAMS, {"job_id": given.job_id})
                for outcome, given in zip(outcomes, jobs, strict=True)
                if outcome.opens
            ]
        )
    return outcomes
