"""The share of failed attempts that a cluster, queue or team has, from the sums of days."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, func, select

from service.contracts.event import FAILURE_STATUSES
from service.sql.types import clean, utc
from service.statistics.repository.sums import JOBS
from service.statistics.tables import day_counts

_FAILED = tuple(sorted(FAILURE_STATUSES))


def read(connection: Connection, kind: str, names: Collection[str], since: datetime) -> dict[str, float]:
    """The share of each name among all failed attempts of the days since a time; without those that had none.

    Args:
        connection: of the session.
        kind: what the names are of (`rollups.SCOPES`).
        names: of clusters, queues or teams.
        since: days that begin earlier are left out, and so is a day until its hours are summed.
    """
    of_days = (day_counts.c.kind == JOBS, day_counts.c.day >= utc(since), day_counts.c.status.in_(_FAILED))
    failed = func.coalesce(func.sum(day_counts.c.jobs), 0)
    everything = select(failed).where(day_counts.c.scope == "", day_counts.c.name == "", *of_days)
    total = int(connection.execute(everything).scalar_one())
    wanted = {clean(name) or "" for name in names}
    rows = connection.execute(
        select(day_counts.c.name, failed.label("failed"))
        .where(day_counts.c.scope == kind, day_counts.c.name.in_(sorted(wanted)), *of_days)
        .group_by(day_counts.c.name)
    )
    return {row.name: int(row.failed) / total for row in rows if total and row.failed}
