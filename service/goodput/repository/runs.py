"""Sums over lineages: a job, its restarts and its resubmissions are one training run."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Subquery, case, func, select

from service.contracts.event import FAILURE_STATUSES
from service.goodput.records import Quantiles, RunSums
from service.goodput.repository import expressions
from service.jobs.tables import jobs
from service.resubmissions.tables import lineages
from service.sql import portable
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import ended_within

LONG_S = 86_400.0  # Kokolis et al. 2024 give ETTR of runs of a day or more
_HOUR_S = 3_600.0
_FAILED = tuple(sorted(FAILURE_STATUSES))


def sums(connection: Connection, since: datetime, until: datetime, scope: Scope) -> RunSums:
    """Restarts and effective training time of the lineages with attempts that ended in a period."""
    attempts = _attempts(since, until, scope)
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
        .group_by(attempts.c.cluster, attempts.c.root, attempts.c.user)
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
    attempts = _attempts(since, until, scope)
    pause = portable.seconds(connection, attempts.c.started_at, attempts.c.previous_end)
    values = select(case((pause > 0, pause), else_=0.0).label("value")).where(
        attempts.c.previous_status.in_(_FAILED), attempts.c.started_at.is_not(None)
    )
    return expressions.quantiles(connection, values)


def _attempts(since: datetime, until: datetime, scope: Scope) -> Subquery:
    """The attempts of a period with the end and status of the attempt before, in the order of their starts."""
    root = func.coalesce(lineages.c.root_job_id, jobs.c.job_id)
    # Clusters reuse job ids; another user's job with the same id is another job.
    user = func.coalesce(jobs.c.user_name, "")
    same = (lineages.c.cluster == jobs.c.cluster) & (lineages.c.job_id == jobs.c.job_id)
    order = (func.coalesce(jobs.c.started_at, jobs.c.ended_at), jobs.c.ended_at, jobs.c.id)

    def previous(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.lag(column).over(partition_by=(jobs.c.cluster, root, user), order_by=order)

    return (
        select(
            jobs.c.cluster,
            root.label("root"),
            user.label("user"),
            jobs.c.submitted_at,
            jobs.c.started_at,
            jobs.c.ended_at,
            jobs.c.gpus,
            jobs.c.gpu_hours_lost.label("lost"),
            expressions.measured().label("measured"),
            previous(jobs.c.ended_at).label("previous_end"),
            previous(jobs.c.status).label("previous_status"),
        )
        .select_from(jobs.outerjoin(lineages, same))
        .where(*ended_within(jobs, since, until, scope))
        .subquery()
    )
