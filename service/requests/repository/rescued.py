"""GPU-hours that successful requests rescued, and those of shadow mode could rescue, read from the database."""

from collections import defaultdict
from collections.abc import Mapping

from sqlalchemy import ColumnElement, Connection, select

from service.jobs.tables import jobs
from service.requests.rescued import gpu_hours_rescued
from service.requests.tables import requests


def rescued(connection: Connection, *which: ColumnElement[bool]) -> float:
    """The GPU-hours rescued by those of the requests whose job succeeded again; see `service.requests.rescued`."""
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
