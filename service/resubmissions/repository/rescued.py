"""GPU-hours that successful requests rescued, and those of shadow mode could rescue: their definition and sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, case, func, or_, select

from service.contracts.advice import AckResult, Outcome
from service.jobs.tables import jobs
from service.resubmissions.tables import requests
from service.sql import portable

# A hook that finds the job started again, by its scheduler or a person, starts nothing.
ELSEWHERE: AckResult = "already_done"
NOT_ELSEWHERE = or_(requests.c.result.is_(None), requests.c.result != ELSEWHERE)


def gpu_hours_rescued(
    outcome: Outcome | str | None,
    *,
    result: AckResult | str | None,
    gpus: int | None,
    started_at: datetime | None,
    ended_at: datetime,
    gpu_hours_lost: float,
) -> float:
    """The GPU-hours that a resubmission saved, compared with starting the job again from its beginning.

    If the resubmitted job succeeded, this is the work of the failed attempt up to its last checkpoint: its GPU-hours
    less the GPU-hours that it lost. It is 0 without a checkpoint, without a success, if the size is unknown, or if
    the scheduler or a person started the job again before the hook acted (`result`).
    """
    if outcome != "succeeded" or result == ELSEWHERE or not gpus or started_at is None:
        return 0.0
    held = gpus * (ended_at - started_at).total_seconds() / 3_600
    return max(held - gpu_hours_lost, 0.0)


def rescued(connection: Connection, *which: ColumnElement[bool]) -> float:
    """The GPU-hours rescued by those of the requests whose job succeeded again."""
    wanted = (
        select(func.coalesce(func.sum(_of_success(connection)), 0.0))
        .select_from(requests.join(jobs, jobs.c.id == requests.c.attempt_id))
        .where(*which, requests.c.outcome == "succeeded", NOT_ELSEWHERE)
    )
    return float(connection.execute(wanted).scalar_one())


@dataclass(frozen=True, slots=True)
class Rescuable:
    """Requests, the GPU-hours that their failures lost, and those that they would rescue if every job succeeded."""

    requests: int
    gpu_hours_lost: float
    gpu_hours: float


def rescuable(connection: Connection, *which: ColumnElement[bool]) -> Mapping[tuple[str, str, str], Rescuable]:
    """What these requests would rescue if each of their jobs succeeded, by cluster, cause and plan; the most first."""
    keys = (requests.c.cluster, requests.c.cause, requests.c.plan)
    many, lost = func.count().label("many"), func.sum(requests.c.gpu_hours).label("lost")
    rows = connection.execute(
        select(*keys, many, lost, func.sum(_of_success(connection)).label("hours"))
        .select_from(requests.outerjoin(jobs, jobs.c.id == requests.c.attempt_id))
        .where(*which)
        .group_by(*keys)
        .order_by(many.desc(), *keys)
    )
    return {(row.cluster, row.cause, row.plan): Rescuable(row.many, row.lost, float(row.hours)) for row in rows}


def _of_success(connection: Connection) -> ColumnElement[float]:
    """`gpu_hours_rescued` of a success, in SQL: with an unknown size or start the hours are null, so not above 0."""
    held = jobs.c.gpus * portable.seconds(connection, jobs.c.ended_at, jobs.c.started_at) / 3_600
    return case((held - jobs.c.gpu_hours_lost > 0, held - jobs.c.gpu_hours_lost), else_=0.0)
