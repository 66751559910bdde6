"""Counts beside the filters of the failures list: over the newest that fit, so that they cost the same on any table."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from service.store import search
from service.store.bulk import is_postgres
from service.store.failure_page import GROUP_FINGERPRINTS, Q_FEW, Q_WINDOW, narrowed_to
from service.store.records import FailureFilter
from service.store.tables import failures
from service.store.tables_groups import group_fingerprints
from service.store.types import LATEST

OVER = 1_000  # failures that are counted
OVER_SEARCHED = 500  # of a search for common words, each of which has to be looked at
NAMES = ("side", "cause", "status", "cluster", "queue", "team", "user", "node")
SHOWN = 8
_COLUMNS = {"user": "user_name", "node": "suspect_node"}


@dataclass(frozen=True, slots=True)
class FacetValue:
    """One value of a filter, and how many failures have it."""

    value: str
    failures: int


@dataclass(frozen=True, slots=True)
class FacetCounts:
    """By filter its commonest values among the newest `of` failures that fit, most first.

    `whole` says that no more fit. `since` is when the oldest of them ended, None where none fits. An abstained verdict
    counts as side and cause "unknown"; `node` is the suspected one.
    """

    of: int
    whole: bool
    since: datetime | None
    counts: dict[str, tuple[FacetValue, ...]]


def count(connection: Connection, filters: FailureFilter, *, over: int = OVER) -> FacetCounts:
    """The counts over the newest `over` failures that fit."""
    words = search.asked_for(filters.q or "")
    known = search.few(connection, words, most=Q_FEW) if words else None
    common = bool(words) and known is None
    over = min(over, OVER_SEARCHED) if common else over
    grouped = filters.group is not None and filters.group.isascii() and filters.group.isdigit()
    asked = filters
    if grouped:
        asked = FailureFilter(**{name: getattr(filters, name) for name in filters.__slots__ if name != "group"})
    narrow = narrowed_to(asked, known, now=filters.until or LATEST, by_cost=False, sqlite=not is_postgres(connection))
    narrowed = narrow.rows
    if grouped:
        prints = (
            select(group_fingerprints.c.fingerprint)
            .where(group_fingerprints.c.group_id == min(int(filters.group or 0), 2**63 - 1))
            .limit(GROUP_FINGERPRINTS)
        )
        if filters.node is not None:
            narrowed = narrowed.where(failures.c.id == narrow.failure_id)
        narrowed = narrowed.where(failures.c.fingerprint.in_(prints))
    narrowed = narrowed.order_by(narrow.at.desc(), narrow.failure_id.desc())
    looked = common or bool(narrow.rest)
    if looked:
        window = narrowed.limit(Q_WINDOW).subquery("searched")
        passes = [*narrow.passes(window), *((search.has_words(connection, "searched.id", words),) if common else ())]
        found = select(window.c.id).where(*passes).limit(over + 1).subquery()
    else:
        found = narrowed.limit(over + 1).subquery()
    rows = connection.execute(
        select(
            failures.c.side,
            failures.c.cause,
            failures.c.abstained,
            failures.c.ended_at,
            *(failures.c[_COLUMNS.get(name, name)].label(name) for name in NAMES[2:]),
        ).join(found, found.c.id == failures.c.id)
    ).all()
    all_read = len(rows) <= over
    more = looked and all_read and connection.execute(narrowed.offset(Q_WINDOW).limit(1)).first() is not None
    whole = all_read and not more
    counted = rows if all_read else sorted(rows, key=lambda row: row.ended_at, reverse=True)[:over]
    tallies: dict[str, Counter[str]] = {name: Counter() for name in NAMES}
    for row in counted:
        for name in NAMES:
            value = "unknown" if row.abstained and name in {"side", "cause"} else getattr(row, name)
            if value is not None:
                tallies[name][value] += 1
    return FacetCounts(
        len(counted),
        whole,
        min((row.ended_at for row in counted), default=None),
        {
            name: tuple(
                FacetValue(value, many)
                for value, many in sorted(tally.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
            )
            for name, tally in tallies.items()
        },
    )
