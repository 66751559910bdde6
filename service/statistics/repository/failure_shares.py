"""The share of all failures that a cluster, queue, team or user has."""

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from service.contracts.event import FAILURE_STATUSES, Status
from service.contracts.page import COUNT_LIMIT
from service.failures.tables import failures
from service.sql import paging
from service.sql.types import clean, utc
from service.statistics.repository.sums import JOBS
from service.statistics.tables import day_counts

# Preempted attempts have verdicts too, and so belong to groups.
_WITH_VERDICT = tuple(sorted((*FAILURE_STATUSES, Status.PREEMPTED)))
USER = "user"


def read(connection: Connection, kind: str, names: Collection[str], since: datetime) -> dict[str, float]:
    """The share of each name among all failures of the days since a time; without names whose share is not known.

    Args:
        connection: of the session.
        kind: "cluster", "queue", "team" or "user".
        names: of one kind. A user with more failures than a page counts is left out.
        since: days that begin earlier are left out, and so is a day until its hours are summed.
    """
    of_days = (day_counts.c.kind == JOBS, day_counts.c.day >= utc(since), day_counts.c.status.in_(_WITH_VERDICT))
    number = func.coalesce(func.sum(day_counts.c.jobs), 0)
    everything = select(number, func.min(day_counts.c.day), func.max(day_counts.c.day)).where(
        day_counts.c.scope == "", day_counts.c.name == "", *of_days
    )
    total, first, last = connection.execute(everything).one()
    wanted = sorted({clean(name) or "" for name in names})
    if not total:
        return {}
    if kind == USER:
        # Only of the days that are in the total: others would make each share too large.
        summed = failures.c.ended_at >= first, failures.c.ended_at < last + timedelta(days=1)
        counts = paging.bounded_counts(failures.c.user_name, wanted, *summed)
        found = {row.value: int(row.many) for row in connection.execute(counts) if row.many <= COUNT_LIMIT}
    else:
        by_name = select(day_counts.c.name, number.label("many")).where(
            day_counts.c.scope == kind, day_counts.c.name.in_(wanted), *of_days
        )
        found = {row.name: int(row.many) for row in connection.execute(by_name.group_by(day_counts.c.name))}
    return {name: min(many / int(total), 1.0) for name, many in found.items() if many}
