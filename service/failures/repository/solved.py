"""The nearest solved failure: one of the same kind, or else the same cause, whose job succeeded afterwards."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from service.failures.records import FailureRow
from service.failures.tables import failures
from service.jobs.same_job import same_job
from service.jobs.tables import jobs
from service.sql.types import names_of

NEAR = 200  # failures that are examined, newest first


_NAMES = {
    "user": "user_name",
    "name": "name",
    "pod": "pod",
    "attempt": "attempt",
    "submitted_at": "submitted_at",
    "started_at": "started_at",
}
_IDENTITY = tuple(_NAMES.values())


@dataclass(frozen=True, slots=True)
class _Run:
    """The facts that identify the job of an attempt."""

    user: str | None
    name: str | None
    pod: str | None
    attempt: int | None
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Solved:
    """A failure and the attempt that succeeded after it. `alike`: of the same kind, else only of the same cause."""

    failure_id: int
    headline: str
    ended_at: datetime
    alike: bool
    cluster: str
    job_id: str
    user: str | None
    team: str | None
    failed_on: tuple[str, ...]
    succeeded_on: tuple[str, ...]
    failed_gpus: int | None
    succeeded_gpus: int | None
    succeeded_at: datetime


def nearest(connection: Connection, row: FailureRow) -> Solved | None:
    """The latest solved failure, None if none of the newest 200 was solved."""
    for alike, same in ((True, failures.c.fingerprint == row.fingerprint), (False, failures.c.cause == row.cause)):
        found = _latest(connection, same, row.id)
        if found is not None:
            return Solved(
                found.id,
                found.headline,
                found.ended_at,
                alike,
                found.cluster,
                found.job_id,
                found.user_name,
                found.team,
                names_of(found.failed_on),
                names_of(found.succeeded_on),
                found.failed_gpus,
                found.succeeded_gpus,
                found.succeeded_at,
            )
    return None


def _latest(connection: Connection, same: ColumnElement[bool], excluded_id: int) -> Row[*tuple[Any, ...]] | None:
    near = (
        select(failures.c.id)
        .where(same)
        .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        .limit(NEAR)
        .subquery("near")
    )
    good = jobs.alias("good")
    found = connection.execute(
        select(
            failures.c.id,
            failures.c.headline,
            failures.c.ended_at,
            failures.c.cluster,
            failures.c.user_name,
            failures.c.team,
            jobs.c.job_id,
            jobs.c.nodes.label("failed_on"),
            jobs.c.gpus.label("failed_gpus"),
            good.c.nodes.label("succeeded_on"),
            good.c.gpus.label("succeeded_gpus"),
            good.c.ended_at.label("succeeded_at"),
            *(jobs.c[name].label(f"failed_{name}") for name in _IDENTITY),
            *(good.c[name].label(f"succeeded_{name}") for name in _IDENTITY),
        )
        .select_from(near)
        .join(failures, failures.c.id == near.c.id)
        .join(jobs, jobs.c.id == failures.c.id)
        .join(
            good,
            (good.c.cluster == jobs.c.cluster)
            & (good.c.job_id == jobs.c.job_id)
            & (good.c.status == "succeeded")
            & (good.c.ended_at > failures.c.ended_at),
        )
        .where(failures.c.id != excluded_id)
        .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        .limit(NEAR)
    )
    return next((row for row in found if same_job(_run(row, "failed"), _run(row, "succeeded"))), None)


def _run(row: Row[*tuple[Any, ...]], which: str) -> _Run:
    facts = row._mapping  # noqa: SLF001 - SQLAlchemy's public name for a row as a mapping
    ended_at = row.ended_at if which == "failed" else row.succeeded_at
    return _Run(**{name: facts[f"{which}_{column}"] for name, column in _NAMES.items()}, ended_at=ended_at)
