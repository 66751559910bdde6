"""Splits a failure filter that no single index serves into parts with one index each, and merges their pages.

A manually merged group has several fingerprints; a person may see the failures of several users and teams.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from service.contracts.page import Page
from service.failures.records import FailureFilter, FailureRow, FailureSort, Visibility
from service.failures.repository import listing
from service.groups.tables import group_fingerprints
from service.sql.types import HIGHEST_ID

GROUP_FINGERPRINTS = 50  # of one manually merged group


def parts(connection: Connection, filters: FailureFilter) -> list[FailureFilter]:
    """Filters without `visible`, with fingerprints as groups, whose union is equivalent to `filters`.

    A failure may match several of them; an empty list matches nothing.
    """
    return [part for one in _of_group(connection, filters) for part in _of_visible(one)]


def _of_group(connection: Connection, filters: FailureFilter) -> list[FailureFilter]:
    if filters.group is None or not (filters.group.isascii() and filters.group.isdigit()):
        return [filters]
    number = min(int(filters.group), HIGHEST_ID)
    prints = connection.execute(
        select(group_fingerprints.c.fingerprint).where(group_fingerprints.c.group_id == number)
    ).scalars()
    return [replace(filters, group=one) for one in sorted(prints)[:GROUP_FINGERPRINTS]]


def _of_visible(filters: FailureFilter) -> Iterator[FailureFilter]:
    """One filter for each visible cluster, user and team that the filter does not exclude."""
    seen = filters.visible
    if seen is None:
        yield filters
        return
    if seen.clusters is None:
        yield from _of_people(filters, seen)
        return
    for cluster in dict.fromkeys(seen.clusters):
        if filters.cluster in {None, cluster}:
            of_cluster = replace(filters, cluster=cluster)
            if seen.users or seen.teams:
                yield from _of_people(of_cluster, seen)
            else:
                yield replace(of_cluster, visible=None)


def _of_people(filters: FailureFilter, seen: Visibility) -> Iterator[FailureFilter]:
    for cluster, user in dict.fromkeys(seen.users):
        if filters.user in {None, user} and (cluster is None or filters.cluster in {None, cluster}):
            yield replace(filters, visible=None, user=user, cluster=filters.cluster if cluster is None else cluster)
    for team in dict.fromkeys(seen.teams):
        if filters.team in {None, team}:
            yield replace(filters, visible=None, team=team)


def page(
    connection: Connection, filters: FailureFilter, *, now: datetime, limit: int, cursor: str | None, sort: FailureSort
) -> Page[FailureRow]:
    """See `FailureReader.page`."""
    listing.check(limit, cursor, sort)
    searched = listing.look_up_words(connection, filters)
    pages = [
        listing.page(connection, one, searched, now=now, limit=limit, cursor=cursor, sort=sort)
        for one in parts(connection, filters)
    ]
    return pages[0] if len(pages) == 1 else _merged(pages, limit, sort)


def _merged(pages: list[Page[FailureRow]], limit: int, sort: FailureSort) -> Page[FailureRow]:
    """The first rows of all pages, up to the point that every part has read."""
    downward = sort.startswith("-")

    def position_of(row: FailureRow) -> listing.Position:
        return listing.position_of(row, sort)

    items = sorted({row.id: row for one in pages for row in one.items}.values(), key=position_of, reverse=downward)
    ends = [listing.decode_position(one.next_cursor, sort) for one in pages if one.next_cursor is not None]
    read_to = (max if downward else min)(ends, default=None)
    if read_to is not None:  # rows of the part that stopped first beyond this point are not known yet
        items = [row for row in items if (position_of(row) >= read_to if downward else position_of(row) <= read_to)]
    if len(items) > limit:
        items = items[:limit]
        read_to = position_of(items[-1])
    return Page(tuple(items), None if read_to is None else listing.encode_position(sort, *read_to))
