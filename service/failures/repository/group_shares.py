"""The groups of the newest matching failures, at most a fixed number of them, so that the cost is bounded."""

from sqlalchemy import Connection, func, select

from service.failures.records import FailureFilter, GroupShare, GroupShares
from service.failures.repository import listing
from service.failures.repository.facets import OVER
from service.failures.tables import failures
from service.groups.tables import group_fingerprints
from service.sql.types import LATEST


def read(connection: Connection, filters: FailureFilter, *, most: int) -> GroupShares:
    """The `most` most frequent groups among the newest failures that match a filter without words and group."""
    search = listing.row_search(connection, filters, listing.SearchedWords(()), now=filters.until or LATEST)
    newest = search.found(OVER)
    group_id = group_fingerprints.c.group_id
    rows = connection.execute(
        select(
            group_id,
            func.count().label("failures"),
            func.count(failures.c.user_name.distinct()).label("users"),
            func.sum(failures.c.gpu_hours_lost).label("lost"),
        )
        .join_from(newest, failures, failures.c.id == newest.c.id)
        .outerjoin(group_fingerprints, group_fingerprints.c.fingerprint == failures.c.fingerprint)
        .group_by(group_id)
    ).all()
    of = sum(row.failures for row in rows)
    grouped = [GroupShare(row.group_id, row.failures, row.users, row.lost) for row in rows if row.group_id is not None]
    grouped.sort(key=lambda share: (-share.failures, share.group_id))
    whole = of < OVER and search.edge(connection) is None
    return GroupShares(of, whole, tuple(grouped[:most]), max(0, len(grouped) - most))
