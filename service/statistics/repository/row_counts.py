"""Counts from the rows of jobs and failures themselves, for what roll-ups do not answer: the ends of a period, mostly.

Their statements are made once, since making one takes longer than the database takes to answer it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Float,
    Row,
    Select,
    case,
    cast,
    func,
    literal_column,
    select,
    union_all,
)

from service.contracts.event import FAILURE_STATUSES
from service.failures.tables import failures
from service.jobs.tables import jobs
from service.sql import bulk
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository import sums
from service.statistics.repository.scope_conditions import in_numbered_range, range_values

MOST_STATEMENTS = 200  # one for each question, scope and number of ranges


def read(
    connection: Connection,
    ranges: Sequence[tuple[datetime, datetime]],
    kind: str,
    scope: Scope,
    *by: str,
    unit: timedelta | None = None,
) -> Iterator[Row[Any]]:
    """Jobs, or failures that count as failed, that ended in these ranges: their number `jobs`, and GPU-hours `lost`.

    Args:
        connection: to the database.
        ranges: times [since, until); a group may occur once in each.
        kind: `sums.JOBS` or `sums.FAILURES`.
        scope: which of them count.
        by: what they are grouped by: the status of jobs, side and cause of failures ("unknown" if abstained).
        unit: with it they are grouped by the time since 1970 in whole units as well, `part`.
    """
    if not ranges:
        return
    names, postgres = tuple(scope.given()), bulk.is_postgres(connection)
    statement = _statement(kind, by, unit, names, len(ranges), postgres=postgres)
    yield from connection.execute(statement, range_values(scope, ranges))


@lru_cache(MOST_STATEMENTS)
def _statement(
    kind: str, by: tuple[str, ...], unit: timedelta | None, names: tuple[str, ...], many: int, *, postgres: bool
) -> Executable:
    wanted = [_of_range(number, kind, by, unit, names, postgres=postgres) for number in range(many)]
    return wanted[0] if many == 1 else union_all(*wanted)


def _of_range(
    number: int, kind: str, by: tuple[str, ...], unit: timedelta | None, names: tuple[str, ...], *, postgres: bool
) -> Select[Any]:
    table = jobs if kind == sums.JOBS else failures
    conditions = [*in_numbered_range(table, number, names), table.c.counted]
    if table is failures:
        # As an expression, so that no planner uses the index on status: the index on time has all columns.
        conditions.append(func.coalesce(failures.c.status, "").in_(FAILURE_STATUSES))
    part = [] if unit is None else [part_of(table.c.ended_at, unit, postgres=postgres).label("part")]
    keys = [table.c[name] if name == "status" else _known(name) for name in by]
    lost = func.sum(table.c.gpu_hours_lost).label("lost")
    columns: list[ColumnElement[Any]] = [*part, *keys, func.count().label("jobs"), lost]
    places: list[ColumnElement[Any]] = [literal_column(str(place)) for place in range(1, len(part) + len(keys) + 1)]
    return select(*columns).where(*conditions).group_by(*places)


def _known(name: str) -> ColumnElement[str]:
    return case((failures.c.abstained, UNKNOWN), else_=failures.c[name]).label(name)


def part_of(at: ColumnElement[datetime], unit: timedelta, *, postgres: bool) -> ColumnElement[int]:
    """The time since 1970 in whole units of this length."""
    seconds = int(unit.total_seconds())
    if postgres:
        return cast(func.floor(cast(func.extract("epoch", at), Float) / seconds), BigInteger)
    return cast(func.strftime("%s", at), BigInteger) // seconds
