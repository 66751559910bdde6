"""Counts over the newest matching failures only, so that their cost is bounded: facets of the list, and groups."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Row, func, select

from classifiers.suspected_place import suspected_node
from service.failures.records import FailureFilter, GroupShare, GroupShares
from service.failures.repository import list_parts, listing
from service.failures.tables import failures
from service.groups.tables import group_fingerprints
from service.times import MAX_TIME

OVER = 1_000  # failures that are counted
OVER_SEARCHED = 500  # for a search of common words, which examines every row
NAMES = ("side", "cause", "status", "cluster", "queue", "team", "user", "node")
SHOWN = 8
_COLUMNS = {"user": "user_name", "node": "suspect_node"}
_ID, _ENDED_AT = 0, 1  # places in `_READ`
_READ = (
    failures.c.id,
    failures.c.ended_at,
    failures.c.abstained,
    *(failures.c[_COLUMNS.get(name, name)].label(name) for name in NAMES),
)


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One value of a filter and the number of failures that have it."""

    value: str
    failures: int


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """For each filter, its most common values among the newest `of` matching failures.

    `whole`: no other failure matches. `since`: when the oldest counted failure ended, None if none matches. An
    abstained verdict counts as side and cause "unknown"; `node` is the suspected one, as in the filter `suspect`.
    """

    of: int
    whole: bool
    since: datetime | None
    counts: dict[str, tuple[FacetValue, ...]]


def count(connection: Connection, filters: FailureFilter, *, over: int = OVER) -> FacetCounts:
    """The counts over the newest `over` matching failures."""
    found: dict[int, Row[Any]] = {}
    whole = True
    searched = listing.look_up_words(connection, filters)
    over = min(over, OVER_SEARCHED) if searched.common else over
    for part in list_parts.parts(connection, filters):
        rows_found = listing.row_search(connection, part, searched, now=filters.until or MAX_TIME)
        newest = rows_found.found(over + 1)
        rows = connection.execute(select(*_READ).join(newest, newest.c.id == failures.c.id)).all()
        found.update((row.id, row) for row in rows)
        whole = whole and (len(rows) > over or rows_found.edge(connection) is None)
    newest_first = sorted(found.values(), key=itemgetter(_ENDED_AT, _ID), reverse=True)
    counted = newest_first[:over]
    whole = whole and len(counted) == len(newest_first)
    columns = {column.name: values for column, values in zip(_READ, zip(*counted, strict=True), strict=False)}
    return FacetCounts(
        len(counted),
        whole,
        counted[-1][_ENDED_AT] if counted else None,
        {name: _most_common(_values(columns, name)) if columns else () for name in NAMES},
    )


def _values(columns: Mapping[str, Sequence[Any]], name: str) -> Iterable[str | None]:
    """What each failure counts for, from the columns that were read."""
    values, abstained = columns[name], columns["abstained"]
    if name == "node":
        given = zip(values, columns["side"], abstained, strict=True)
        return (suspected_node(node, side, abstained=undecided) for node, side, undecided in given)
    if name in {"side", "cause"}:
        return ("unknown" if undecided else value for value, undecided in zip(values, abstained, strict=True))
    return values


def _most_common(values: Iterable[str | None]) -> tuple[FacetValue, ...]:
    tally = Counter(value for value in values if value is not None)
    ranked = sorted(tally.items(), key=lambda item: (-item[1], item[0]))
    return tuple(FacetValue(value, many) for value, many in ranked[:SHOWN])


def group_shares(connection: Connection, filters: FailureFilter, *, most: int) -> GroupShares:
    """The `most` most frequent groups among the newest failures that match a filter without words and group."""
    search = listing.row_search(connection, filters, listing.SearchedWords(()), now=filters.until or MAX_TIME)
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
