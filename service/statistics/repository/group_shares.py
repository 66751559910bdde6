"""The groups to which the failures of a period belong, counted over the newest ones, so that the cost is bounded."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, func, select

from service.contracts.event import FAILURE_STATUSES
from service.failures.tables import failures
from service.groups.tables import group_fingerprints
from service.sql.types import utc
from service.statistics.records import GroupShare, GroupShares
from service.statistics.repository.conditions import within

OVER = 1_000  # failures that are counted
_FAILED = tuple(sorted(FAILURE_STATUSES))


def read(
    connection: Connection, since: datetime, until: datetime, scope: Mapping[str, str | None], *, most: int
) -> GroupShares:
    """The `most` most frequent groups among the newest failures that ended in [since, until)."""
    newest = (
        select(failures.c.fingerprint, failures.c.user_name, failures.c.gpu_hours_lost)
        .where(*within(failures, utc(since), utc(until), scope), func.coalesce(failures.c.status, "").in_(_FAILED))
        .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
        .limit(OVER)
        .subquery()
    )
    many = func.count().label("failures")
    rows = connection.execute(
        select(
            group_fingerprints.c.group_id,
            many,
            func.count(newest.c.user_name.distinct()).label("users"),
            func.sum(newest.c.gpu_hours_lost).label("lost"),
        )
        .join_from(newest, group_fingerprints, group_fingerprints.c.fingerprint == newest.c.fingerprint)
        .group_by(group_fingerprints.c.group_id)
        .order_by(many.desc(), group_fingerprints.c.group_id)
    ).all()
    of = connection.execute(select(func.count()).select_from(newest)).scalar_one()
    shares = tuple(GroupShare(row.group_id, row.failures, row.users, row.lost) for row in rows[:most])
    return GroupShares(of, of < OVER, shares, max(0, len(rows) - most))
