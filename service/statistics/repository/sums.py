"""Sums over all clusters, queues and teams, so that questions about all jobs read few rows.

They are rows of `hours` with kinds of their own, and rows of `days` with a scope of their own. Failed jobs are added up
over all statuses that count as failed. Whoever counts an hour again deletes its rows first, and whoever sums a day
those of the day. A process of an earlier release that still runs leaves them without such sums; then the counts are
read instead. So a sum is never older than the counts that it is made of.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    bindparam,
    cast,
    func,
    insert,
    literal,
    literal_column,
    select,
)

from service.contracts.event import FAILURE_STATUSES, Status
from service.statistics.tables import day_counts, hour_counts

JOBS, FAILURES = "jobs", "failures"
SCOPE = "sums"  # of rows of `days`
_KEYS = ("status", "side", "cause")
# Another set of statuses needs a migration that sums the counts again, as 0025 does.


@dataclass(frozen=True, slots=True)
class _Sum:
    """Rows of kind `kind` are those of kind `of`, summed by the columns `by`; the others are "", or "failed"."""

    kind: str
    of: str
    by: tuple[str, ...]


_OF_JOBS = _Sum("jobs_sum", JOBS, ("status",))
_OF_SIDES = _Sum("sides_sum", FAILURES, ("side",))
_OF_CAUSES = _Sum("causes_sum", FAILURES, ("side", "cause"))
_SMALLEST_FIRST = (_OF_JOBS, _OF_SIDES, _OF_CAUSES)


def conditions(table: Table, kind: str, by: Collection[str]) -> list[ColumnElement[bool]] | None:
    """The conditions of the sums that answer a question about all jobs of `kind`, grouped by `by`; None if none do.

    A question about failures may name the status: it is "failed" for each status that counts as failed.
    """
    if table is day_counts and kind == JOBS:
        return None  # a day has few rows for its jobs
    wanted = set(by) - {"status"} if kind == FAILURES else set(by)
    one = next((one for one in _SMALLEST_FIRST if one.of == kind and wanted <= set(one.by)), None)
    return None if one is None else _rows_of(table, one)


def times(connection: Connection, table: Table, condition: ColumnElement[bool]) -> set[datetime]:
    """Which hours or days under a condition have sums. Those without jobs or failures have none either."""
    time = table.c.day if table is day_counts else table.c.hour
    marks = _rows_of(table, _OF_SIDES if table is day_counts else _OF_JOBS)
    return set(connection.execute(select(time).where(condition, *marks).distinct()).scalars())


def one_of(time: Column[datetime], wanted: Sequence[datetime]) -> ColumnElement[bool]:
    """The condition that a time is one of many, as one parameter: SQLAlchemy takes long to wrap each by itself."""
    return time.in_(bindparam(None, wanted, time.type, unique=True, expanding=True))


def _rows_of(table: Table, one: _Sum) -> list[ColumnElement[bool]]:
    of_sums = [day_counts.c.scope == SCOPE, day_counts.c.name == ""] if table is day_counts else []
    return [*of_sums, table.c.kind == one.kind]


def write_hour(connection: Connection, hour: datetime) -> None:
    """Sum the counts of an hour, which has no sums yet."""
    for one in _SMALLEST_FIRST:
        fixed = {"kind": literal(one.kind), "cluster": _EMPTY, "queue": _EMPTY, "team": _EMPTY}
        connection.execute(
            _insert(hour_counts, one, {"hour": hour_counts.c.hour, **fixed}, [hour_counts.c.hour == hour])
        )


def write_day(connection: Connection, day: datetime) -> None:
    """Sum the failures of a day, which has no such sums yet, from its sums of all jobs."""
    of_all = [day_counts.c.day == day, day_counts.c.scope == "", day_counts.c.name == ""]
    for one in (_OF_SIDES, _OF_CAUSES):
        fixed = {"scope": literal(SCOPE), "name": _EMPTY, "kind": literal(one.kind)}
        connection.execute(_insert(day_counts, one, {"day": day_counts.c.day, **fixed}, of_all))


_EMPTY: ColumnElement[Any] = literal("")


def _insert(table: Table, one: _Sum, fixed: dict[str, ColumnElement[Any]], where: list[ColumnElement[bool]]) -> Insert:
    """Insert a sum of the rows of a table that meet the conditions, `fixed` being its other columns."""
    failed = [table.c.status.in_(FAILURE_STATUSES)] if one.of == FAILURES else []
    rest = {"status": literal(Status.FAILED.value) if one.of == FAILURES else _EMPTY, "side": _EMPTY, "cause": _EMPTY}
    keys = {name: table.c[name] if name in one.by else rest[name] for name in _KEYS}
    added: Select[Any] = select(
        *fixed.values(), *keys.values(), cast(func.sum(table.c.jobs), BigInteger), func.sum(table.c.gpu_hours_lost)
    ).where(*where, table.c.kind == one.of, *failed)
    grouped = added.group_by(literal_column("1"), *(table.c[name] for name in one.by))
    return insert(table).from_select([*fixed, *keys, "jobs", "gpu_hours_lost"], grouped)
