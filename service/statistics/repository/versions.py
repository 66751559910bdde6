"""Versions of days, which tell whether counts that a process keeps are still those of the database.

A version is a row of `days` with a scope of its own, so that whoever counts hours of a day again and deletes its rows
first deletes the version too, a process of an earlier release as well. Every version is greater than all before it:
counts of a period have changed if the number of its versions or the greatest of them has.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select

from service.statistics.tables import day_counts

SCOPE = "version"  # of rows of `days`
SPAN = timedelta(days=800)  # before now, in which each day has a version, whether it has jobs or not
_MARKED = (day_counts.c.scope == SCOPE, day_counts.c.name == "", day_counts.c.kind == "")
_LAST = datetime(1970, 1, 1, tzinfo=UTC)  # has the last version that was given: nobody counts hours of this day
_DAY = timedelta(days=1)
_Time = datetime | ColumnElement[datetime]


def of_days(begin: _Time, end: _Time) -> Select[Any, Any]:
    """The query for the greatest version of the days that begin in [begin, end), and for their number.

    Both are times, or expressions of them.
    """
    within = (day_counts.c.day >= begin, day_counts.c.day < end)
    return select(func.max(day_counts.c.jobs).label("greatest"), func.count().label("number")).where(*_MARKED, *within)


def write(connection: Connection, wanted: Sequence[datetime]) -> None:
    """Give days that have no version a new one; whoever calls this holds the lock of those who count hours."""
    if not wanted:
        return
    highest = connection.execute(select(func.max(day_counts.c.jobs)).where(*_MARKED)).scalar() or 0
    connection.execute(delete(day_counts).where(*_MARKED, day_counts.c.day == _LAST))
    fixed = {"scope": SCOPE, "name": "", "kind": "", "status": "", "side": "", "cause": "", "gpu_hours_lost": 0.0}
    connection.execute(insert(day_counts), [{**fixed, "day": day, "jobs": highest + 1} for day in (_LAST, *wanted)])


def complete(connection: Connection, today: datetime) -> None:
    """Give each day of `SPAN` until today that has no version one, as `write` does."""
    first = today - SPAN
    if connection.execute(of_days(first, today + _DAY)).one().number == SPAN // _DAY + 1:
        return
    have = set(connection.execute(select(day_counts.c.day).where(*_MARKED, day_counts.c.day >= first)).scalars())
    every = (first + n * _DAY for n in range(SPAN // _DAY + 1))
    write(connection, [day for day in every if day not in have])
