"""GPU-hours that successful requests rescued, and those of shadow mode could rescue: their definition and sums."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, select

from service.contracts.advice import Outcome
from service.jobs.tables import jobs
from service.requests.tables import requests


def gpu_hours_rescued(
    outcome: Outcome | str | None,
    *,
    gpus: int | None,
    started_at: datetime | None,
    ended_at: datetime,
    gpu_hours_lost: float,
) -> float:
    """The GPU-hours that a resubmission saved, compared with starting the job again from its beginning.

    If the resubmitted job succeeded, this is the work of the failed attempt up to its last checkpoint: its GPU-hours
    less the GPU-hours that it lost. It is 0 without a checkpoint, without a success, or if the size is unknown.
    """
    if outcome != "succeeded" or not gpus or started_at is None:
        return 0.0
    held = gpus * (ended_at - started_at).total_seconds() / 3_600
    return max(held - gpu_hours_lost, 0.0)


def rescued(connection: Connection, *which: ColumnElement[bool]) -> float:
    """The GPU-hours rescued by those of the requests whose job succeeded again."""
    rows = connection.execute(
        select(requests.c.outcome, jobs.c.gpus, jobs.c.started_at, jobs.c.ended_at, jobs.c.gpu_hours_lost)
        .select_from(requests.join(jobs, jobs.c.id == requests.c.attempt_id))
        .where(*which, requests.c.outcome == "succeeded")
    )
    return sum(
        gpu_hours_rescued(
            row.outcome,
            gpus=row.gpus,
            started_at=row.started_at,
            ended_at=row.ended_at,
            gpu_hours_lost=row.gpu_hours_lost,
        )
        for row in rows
    )


def rescuable(connection: Connection, *which: ColumnElement[bool]) -> Mapping[tuple[str, str, str], float]:
    """The GPU-hours that these requests would rescue if each of their jobs succeeded, by cluster, cause and plan."""
    rows = connection.execute(
        select(
            *(requests.c.cluster, requests.c.cause, requests.c.plan),
            *(jobs.c.gpus, jobs.c.started_at, jobs.c.ended_at, jobs.c.gpu_hours_lost),
        )
        .select_from(requests.join(jobs, jobs.c.id == requests.c.attempt_id))
        .where(*which)
    )
    found: dict[tuple[str, str, str], float] = defaultdict(float)
    for row in rows:
        found[row.cluster, row.cause, row.plan] += gpu_hours_rescued(
            "succeeded",
            gpus=row.gpus,
            started_at=row.started_at,
            ended_at=row.ended_at,
            gpu_hours_lost=row.gpu_hours_lost,
        )
    return found
