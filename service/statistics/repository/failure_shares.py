"""The share of all failures that a cluster, queue, team or user has."""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection, and_, func, or_, select

from service.contracts.event import FAILURE_STATUSES, Status
from service.contracts.page import COUNT_LIMIT
from service.failures.tables import failures
from service.sql import paging
from service.sql.types import clean, utc
from service.statistics.repository.rollups import start_of_day
from service.statistics.repository.sums import JOBS
from service.statistics.tables import day_counts, stale_hours

# Preempted attempts have verdicts too, and so belong to groups.
_WITH_VERDICT = tuple(sorted((*FAILURE_STATUSES, Status.PREEMPTED)))
USER = "user"
_DAY = timedelta(days=1)
_Span = tuple[datetime, datetime]
_COUNTED = (day_counts.c.kind == JOBS, day_counts.c.status.in_(_WITH_VERDICT))
_NUMBER = func.coalesce(func.sum(day_counts.c.jobs), 0)


def read(connection: Connection, kind: str, names: Collection[str], since: datetime) -> dict[str, float]:
    """The share of each name among all failures of the days since a time; without names whose share is not known.

    Args:
        connection: of the session.
        kind: "cluster", "queue", "team" or "user".
        names: of one kind. A user with more failures than a page counts is left out.
        since: days that begin earlier are left out, and so is a day until its hours are summed.
    """
    spans, total = _summed_days(connection, utc(since))
    if not total:
        return {}
    wanted = sorted({clean(name) or "" for name in names})
    if kind == USER:
        # Only of the days that are in the total: others would make each share too large.
        inside = or_(*(and_(failures.c.ended_at >= first, failures.c.ended_at < end) for first, end in spans))
        counts = paging.bounded_counts(failures.c.user_name, wanted, inside)
        found = {row.value: int(row.many) for row in connection.execute(counts) if row.many <= COUNT_LIMIT}
    else:
        by_name = select(day_counts.c.name, _NUMBER.label("many")).where(
            *_COUNTED,
            day_counts.c.scope == kind,
            day_counts.c.name.in_(wanted),
            or_(*(and_(day_counts.c.day >= first, day_counts.c.day < end) for first, end in spans)),
        )
        found = {row.name: int(row.many) for row in connection.execute(by_name.group_by(day_counts.c.name))}
    return {name: min(many / total, 1.0) for name, many in found.items() if many}


def _summed_days(connection: Connection, since: datetime) -> tuple[list[_Span], int]:
    """The spans of the days since a time whose hours are all summed, and the failures of these days."""
    by_day = (
        select(day_counts.c.day, _NUMBER.label("many"))
        .where(*_COUNTED, day_counts.c.scope == "", day_counts.c.name == "", day_counts.c.day >= since)
        .group_by(day_counts.c.day)
        .order_by(day_counts.c.day)
    )
    hours = connection.execute(select(stale_hours.c.hour).where(stale_hours.c.hour >= since).distinct()).scalars()
    stale = {start_of_day(hour) for hour in hours}
    spans: list[_Span] = []
    total = 0
    for day, many in connection.execute(by_day):
        if day in stale:
            continue
        total += int(many)
        if spans and spans[-1][1] == day:
            spans[-1] = (spans[-1][0], day + _DAY)
        else:
            spans.append((day, day + _DAY))
    return spans, total
