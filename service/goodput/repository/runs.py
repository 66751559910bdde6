"""Sums over lineages: a job, its restarts and its resubmissions are one training run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Subquery, and_, case, func, or_, select

from service.contracts.event import FAILURE_STATUSES
from service.goodput.records import Quantiles, RunSums
from service.goodput.repository import expressions
from service.jobs.repository import neighbours
from service.jobs.tables import jobs
from service.resubmissions.tables import lineages
from service.sql import portable
from service.sql.types import utc
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import ended_within

LONG_S = 86_400.0  # Kokolis et al. 2024 give ETTR of runs of a day or more
_HOUR_S = 3_600.0


def sums(connection: Connection, since: datetime, until: datetime, scope: Scope) -> RunSums:
    """Restarts and effective training time of the lineages with attempts that ended in a period."""
    attempts = _numbered(attempts_of_runs(connection, ended_within(jobs, since, until, scope)), since)
    ran = portable.seconds(connection, attempts.c.ended_at, attempts.c.started_at)
    eligible = case(
        (attempts.c.previous_end.is_(None), attempts.c.submitted_at),
        (attempts.c.submitted_at > attempts.c.previous_end, attempts.c.submitted_at),
        else_=attempts.c.previous_end,
    )
    waited = func.coalesce(portable.seconds(connection, attempts.c.started_at, eligible), 0.0)
    queued = case((waited > 0, waited), else_=0.0)
    lost = attempts.c.lost * _HOUR_S / attempts.c.gpus
    productive = case((lost < ran, ran - lost), else_=0.0)
    known = attempts.c.measured
    runs = (
        select(
            func.count().label("attempts"),
            func.sum(case((known, productive), else_=0.0)).label("productive"),
            func.sum(case((known, ran + queued), else_=0.0)).label("available"),
            func.sum(case((known, ran), else_=0.0)).label("ran"),
            func.sum(case((known, productive * attempts.c.gpus), else_=0.0)).label("gpu_productive"),
            func.sum(case((known, (ran + queued) * attempts.c.gpus), else_=0.0)).label("gpu_available"),
        )
        .group_by(attempts.c.cluster, attempts.c.root, attempts.c.user, attempts.c.run)
        .subquery()
    )
    is_long = runs.c.ran >= LONG_S
    rows = connection.execute(
        select(
            (runs.c.attempts - 1).label("restarts"),
            func.count().label("many"),
            func.sum(runs.c.gpu_productive).label("productive"),
            func.sum(runs.c.gpu_available).label("available"),
            func.sum(case((is_long, runs.c.productive / runs.c.available), else_=0.0)).label("long_sum"),
            func.sum(case((is_long, 1), else_=0)).label("long_count"),
        )
        .group_by(runs.c.attempts)
        .order_by(runs.c.attempts)
    ).all()
    long_count = sum(int(row.long_count) for row in rows)
    return RunSums(
        {row.restarts: row.many for row in rows},
        sum(row.productive for row in rows) / _HOUR_S,
        sum(row.available for row in rows) / _HOUR_S,
        sum(row.long_sum for row in rows) / long_count if long_count else None,
        long_count,
    )


def times_to_restart(connection: Connection, since: datetime, until: datetime, scope: Scope) -> Quantiles:
    """Seconds from the end of a failed attempt to the start of the next one of its lineage."""
    attempts = attempts_of_runs(connection, ended_within(jobs, since, until, scope))
    pause = portable.seconds(connection, attempts.c.started_at, attempts.c.previous_end)
    values = select(case((pause > 0, pause), else_=0.0).label("value")).where(
        attempts.c.previous_status.in_(FAILURE_STATUSES), attempts.c.started_at.is_not(None)
    )
    return expressions.quantiles(connection, values)


def attempts_of_runs(connection: Connection, where: Sequence[ColumnElement[bool]]) -> Subquery:
    """The attempts that meet conditions, with the end and status of the attempt before, in the order of their starts.

    `begins`: whether an attempt is the first one of its run. A job id that was used again begins another run.
    """
    root = func.coalesce(lineages.c.root_job_id, jobs.c.job_id)
    user = func.coalesce(jobs.c.user_name, "")
    same = (lineages.c.cluster == jobs.c.cluster) & (lineages.c.job_id == jobs.c.job_id)
    at = func.coalesce(jobs.c.started_at, jobs.c.ended_at)
    order = (at, jobs.c.ended_at, jobs.c.id)

    def previous(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.lag(column).over(partition_by=(jobs.c.cluster, root, user), order_by=order)

    found = (
        select(
            *(jobs.c.id, jobs.c.cluster, jobs.c.job_id, jobs.c.gpus, at.label("at")),
            root.label("root"),
            user.label("user"),
            jobs.c.gpu_hours_lost.label("lost"),
            lineages.c.lineage,
            expressions.measured().label("measured"),
            previous(jobs.c.status).label("status_before"),
            *neighbours.columns(neighbours.THIS, lambda column: column),
            *neighbours.columns("previous_", previous),
        )
        .select_from(jobs.outerjoin(lineages, same))
        .where(*where)
        .subquery()
    )
    goes_on = and_(
        found.c.previous_ended_at.is_not(None),
        # A job that was resubmitted belongs to the run of its first job, whatever its id and times.
        or_(found.c.lineage.is_not(None), neighbours.same_job(connection, found, "previous_", neighbours.THIS)),
    )
    return select(
        *(found.c[name] for name in ("id", "cluster", "job_id", "root", "user", "at", "gpus", "lost", "measured")),
        *(found.c[name] for name in ("submitted_at", "started_at", "ended_at")),
        case((goes_on, 0), else_=1).label("begins"),
        case((goes_on, found.c.previous_ended_at)).label("previous_end"),
        case((goes_on, found.c.status_before)).label("previous_status"),
    ).subquery()


def _numbered(attempts: Subquery, since: datetime) -> Subquery:
    """The attempts with the number of their run among those with the same root, and with ends before the period."""
    names = ("cluster", "root", "user", "gpus", "lost", "measured", "submitted_at", "started_at", "ended_at")
    # Columns, not expressions, so that PostgreSQL knows that the rows are in this order already.
    order = (attempts.c.at, attempts.c.ended_at, attempts.c.id)
    run = func.sum(attempts.c.begins).over(
        partition_by=(attempts.c.cluster, attempts.c.root, attempts.c.user), order_by=order, rows=(None, 0)
    )
    return select(
        *(attempts.c[name] for name in names),
        func.coalesce(attempts.c.previous_end, _end_before(attempts, since)).label("previous_end"),
        run.label("run"),
    ).subquery()


def _end_before(attempts: Subquery, since: datetime) -> ColumnElement[datetime]:
    """The end of the last attempt before a period of a job that was submitted before that end."""
    earlier = jobs.alias("earlier")
    of_job = and_(earlier.c.cluster == attempts.c.cluster, earlier.c.job_id == attempts.c.job_id)
    between = and_(earlier.c.ended_at > attempts.c.submitted_at, earlier.c.ended_at < utc(since), earlier.c.counted)
    last: ColumnElement[datetime] = (
        select(func.max(earlier.c.ended_at))
        .where(of_job, func.coalesce(earlier.c.user_name, "") == attempts.c.user, between)
        .correlate(attempts)
        .scalar_subquery()
    )
    return case((and_(attempts.c.begins == 1, attempts.c.submitted_at < utc(since)), last))
