"""Versions of days, which tell whether counts that a process keeps are still those of the database.

A version is a row of `days` with a scope of its own, so that whoever counts hours of a day again and deletes its rows
first deletes the version too, a process of an earlier release as well. Every version is greater than all before it:
counts of a period have changed if the number of its versions or the greatest of them has.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select

from service.statistics.tables import days

SCOPE = "version"  # of rows of `days`
SPAN = timedelta(days=800)  # before now, in which each day has a version, whether it has jobs or not
_MARKED = (days.c.scope == SCOPE, days.c.name == "", days.c.kind == "")
_LAST = datetime(1970, 1, 1, tzinfo=UTC)  # has the last version that was given: nobody counts hours of this day
_DAY = timedelta(days=1)


def of_days(begin: Any, end: Any) -> Select[Any, Any]:
    """The query for the greatest version of the days that begin in [begin, end), and for their number.

    Both are times, or expressions of them.
    """
    within = (days.c.day >= begin, days.c.day < end)
    return select(func.max(days.c.jobs).label("greatest"), func.count().label("number")).where(*_MARKED, *within)


def write(connection: Connection, wanted: Sequence[datetime]) -> None:
    """Give days that have no version a new one; whoever calls this holds the lock of those who count hours."""
    if not wanted:
        return
    highest = connection.execute(select(func.max(days.c.jobs)).where(*_MARKED)).scalar() or 0
    connection.execute(delete(days).where(*_MARKED, days.c.day == _LAST))
    fixed = {"scope": SCOPE, "name": "", "kind": "", "status": "", "side": "", "cause": "", "gpu_hours_lost": 0.0}
    connection.execute(insert(days), [{**fixed, "day": day, "jobs": highest + 1} for day in (_LAST, *wanted)])


def complete(connection: Connection, today: datetime) -> None:
    """Give each day of `SPAN` until today that has no version one, as `write` does."""
    first = today - SPAN
    if connection.execute(of_days(first, today + _DAY)).one().number == SPAN // _DAY + 1:
        return
    have = set(connection.execute(select(days.c.day).where(*_MARKED, days.c.day >= first)).scalars())
    every = (first + n * _DAY for n in range(SPAN // _DAY + 1))
    write(connection, [day for day in every if day not in have])
