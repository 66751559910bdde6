"""Sums of GPU-hours over attempts."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Float, case, cast, func, literal_column, select

from service.failures.tables import failures
from service.goodput.records import AttemptSum
from service.goodput.repository import expressions
from service.jobs.tables import jobs
from service.sql import portable
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository.scope_conditions import ended_within

_HOUR_S, _DAY_S = 3_600.0, 86_400.0


def sums(connection: Connection, bounds: Sequence[datetime], scope: Scope) -> tuple[AttemptSum, ...]:
    """Sums of the attempts that ended between the first and the last of `bounds`, by part, status, cause and size."""
    ids = expressions.ids_of_failures(connection, bounds[0], bounds[-1], scope)
    ran = portable.seconds(connection, jobs.c.ended_at, jobs.c.started_at)
    held = ran * jobs.c.gpus / _HOUR_S
    known = expressions.measured()
    # A checkpoint or a clock can make the stored loss larger than the hours held.
    lost = case((jobs.c.gpu_hours_lost < held, jobs.c.gpu_hours_lost), else_=held)
    columns = (
        expressions.part(bounds).label("part"),
        jobs.c.status,
        case((failures.c.abstained, UNKNOWN), else_=failures.c.side).label("side"),
        case((failures.c.abstained, UNKNOWN), else_=failures.c.cause).label("cause"),
        expressions.size().label("size"),
    )
    rows = connection.execute(
        select(
            *columns,
            func.count().label("attempts"),
            func.sum(case((known, 1), else_=0)).label("measured"),
            func.sum(case((known, held), else_=0.0)).label("held"),
            func.sum(case((known, lost), else_=0.0)).label("lost"),
            func.sum(case((known, ran / _HOUR_S), else_=0.0)).label("job_hours"),
            func.sum(case((known, ran / _DAY_S * cast(expressions.node_count(connection), Float)), else_=0.0)).label(
                "node_days"
            ),
        )
        .select_from(jobs.outerjoin(failures, (failures.c.id == jobs.c.failure_id) & failures.c.id.between(*ids)))
        .where(*ended_within(jobs, bounds[0], bounds[-1], scope))
        # By position: an expression with parameters is another one to PostgreSQL.
        .group_by(*(literal_column(str(n + 1)) for n in range(len(columns))))
        .order_by(*(literal_column(str(n + 1)) for n in range(len(columns))))
    )
    return tuple(
        AttemptSum(
            row.part,
            row.status,
            row.side,
            row.cause,
            row.size,
            row.attempts,
            int(row.measured),
            float(row.held),
            float(row.lost),
            float(row.job_hours),
            float(row.node_days),
        )
        for row in rows
    )
