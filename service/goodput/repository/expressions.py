"""SQL expressions that the queries of goodput share, on SQLite and PostgreSQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Subquery,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from service.goodput.records import GPUS_PER_NODE, Quantiles
from service.jobs.tables import jobs
from service.sql import bulk
from service.sql.types import HIGHEST_ID, utc
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import ended_within

LARGEST = 1 << 20  # GPUs; the last size
SIZES = tuple(1 << power for power in range(21))


def node_count(connection: Connection) -> ColumnElement[int]:
    """Nodes of an attempt: those that its event names, else one for each eight GPUs."""
    if bulk.is_postgres(connection):
        named: ColumnElement[int] = func.json_array_length(cast(jobs.c.nodes, JSON), type_=Integer)
    else:
        named = func.json_array_length(jobs.c.nodes, type_=Integer)
    return func.coalesce(named, (jobs.c.gpus + (GPUS_PER_NODE - 1)) / literal(GPUS_PER_NODE, Integer))


def size() -> ColumnElement[int]:
    """GPUs rounded up to a power of two; 0: unknown."""
    return case(
        (or_(jobs.c.gpus.is_(None), jobs.c.gpus <= 0), 0),
        *((jobs.c.gpus <= limit, limit) for limit in SIZES),
        else_=LARGEST,
    )


def part(bounds: Sequence[datetime]) -> ColumnElement[int]:
    """The number of the part of the period in which an attempt ended."""
    return case(*((jobs.c.ended_at < utc(end), n) for n, end in enumerate(bounds[1:])), else_=len(bounds) - 2)


def ids_of_failures(connection: Connection, since: datetime, until: datetime, scope: Scope) -> tuple[int, int]:
    """The lowest and the highest id of the failures of attempts that ended in a period; a range without ids if none.

    A join bounded by them reads one range of an index. Without it, PostgreSQL reads all failures as soon as a period
    has more than some percent of them. SQLite looks each failure up in any case, so its range holds every id.
    """
    if not bulk.is_postgres(connection):
        return 0, HIGHEST_ID
    wanted = select(func.min(jobs.c.failure_id), func.max(jobs.c.failure_id))
    low, high = connection.execute(wanted.where(*ended_within(jobs, since, until, scope))).one()
    return (0, -1) if low is None else (low, high)


def measured() -> ColumnElement[bool]:
    """Whether size and start of an attempt are known."""
    return and_(jobs.c.gpus > 0, jobs.c.started_at.is_not(None), jobs.c.started_at <= jobs.c.ended_at)


def quantiles(connection: Connection, values: Select[Any] | Subquery) -> Quantiles:
    """The quantiles of the column `value` of a query, computed in the database."""
    source = values if isinstance(values, Subquery) else values.subquery()
    ranked = select(
        source.c.value,
        func.row_number().over(order_by=source.c.value).label("place"),
        func.count().over().label("many"),
    ).subquery()
    # Nearest rank: the smallest place that is at least the share of the number, in whole numbers.
    found = connection.execute(
        select(
            func.max(ranked.c.many).label("many"),
            func.max(case((ranked.c.place * 2 < ranked.c.many + 2, ranked.c.value))).label("median"),
            func.max(case((ranked.c.place * 20 < ranked.c.many * 19 + 20, ranked.c.value))).label("high"),
        )
    ).one()
    return Quantiles(int(found.many or 0), found.median, found.high)
