"""The failures list: filters, order and keyset paging, each served by an index of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    and_,
    false,
    literal,
    literal_column,
    or_,
    select,
    tuple_,
)

from service.errors import FieldError, InvalidInput
from service.store import cursor as cursors
from service.store import search
from service.store.bulk import is_postgres
from service.store.job_rows import nodes_of
from service.store.records import FailureFilter, FailureRow, FailureSort, Page, Visible
from service.store.tables import failure_nodes, failures, jobs
from service.store.tables_groups import group_fingerprints
from service.store.types import EARLIEST, UtcDateTime, clean, utc

# What a line of the list takes from the attempt that opened the failure.
JOB_FACTS = (
    jobs.c.job_id,
    jobs.c.attempt,
    jobs.c.name,
    jobs.c.nodes,
    jobs.c.gpus,
    jobs.c.started_at,
    jobs.c.received_at,
)
# Those that leave fewest rows stand first.
_EQUAL = {
    "group": failures.c.fingerprint,
    "user": failures.c.user_name,
    "cause": failures.c.cause,
    "symptom": failures.c.symptom,
    "category": failures.c.category,
    "team": failures.c.team,
    "queue": failures.c.queue,
    "cluster": failures.c.cluster,
    "status": failures.c.status,
    "side": failures.c.side,
}


# Words that few failures have are looked up first. What no index serves, common words and a second filter beside the
# one that chose the index, is looked for in this many rows of that index, and the cursor goes on from there.
Q_FEW = 2_000
Q_WINDOW = 10_000
SORTED = timedelta(days=28)  # up to here what ended in a time is sorted by cost; beyond, the costliest are looked at
GROUP_FINGERPRINTS = 50  # of one group, merged by hand
_HIGHEST = 2**63 - 1


def page(
    connection: Connection, filters: FailureFilter, *, now: datetime, limit: int, cursor: str | None, sort: FailureSort
) -> Page[FailureRow]:
    """See `Failures.page`."""
    cursors.check_limit(limit)
    if sort not in get_args(FailureSort):
        expected = "one of " + ", ".join(get_args(FailureSort))
        raise InvalidInput(f"sort: expected {expected}", (FieldError("sort", expected, str(sort)[:40]),))
    if filters.group is not None and filters.group.isascii() and filters.group.isdigit():
        return _of_group(connection, filters, now=now, limit=limit, cursor=cursor, sort=sort)
    by_cost = sort == "-gpu_hours_lost"
    words = search.asked_for(filters.q or "")
    if not words and (filters.q or "").strip():
        return Page(())  # nothing but marks: no evidence has such a word
    known = search.few(connection, words, most=Q_FEW) if words else None
    common = bool(words) and known is None
    narrow = narrowed_to(filters, known, now=now, by_cost=by_cost, sqlite=not is_postgres(connection))
    narrowed = narrow.rows
    if cursor is not None:
        narrowed = narrowed.where(_beyond(cursor, sort, narrow.at, narrow.failure_id))
    narrowed = narrowed.order_by(*_order(narrow.at, narrow.failure_id, sort))
    # The page's rows are found in one index first; only they are joined with their attempts.
    looked = common or bool(narrow.rest)
    if looked:
        # The window is in order: the search stops with the page, whatever the plan.
        window = narrowed.limit(Q_WINDOW).subquery("searched")
        found = (
            select(window.c.id, window.c.at)
            .where(*narrow.passes(window), *((search.has_words(connection, "searched.id", words),) if common else ()))
            .order_by(*_order(window.c.at, window.c.id, sort))
            .limit(limit + 1)
            .subquery()
        )
    else:
        found = narrowed.limit(limit + 1).subquery()
    rows = connection.execute(
        select(failures, *JOB_FACTS)
        .join(found, found.c.id == failures.c.id)
        .join(jobs, jobs.c.id == failures.c.id)
        .order_by(*_order(found.c.at, found.c.id, sort))
    ).all()
    items = tuple(row_of(row) for row in rows[:limit])
    if len(rows) > limit:
        last = items[-1]
        return Page(items, _cursor(sort, last.gpu_hours_lost if by_cost else last.ended_at, last.id))
    edge = connection.execute(narrowed.offset(Q_WINDOW - 1).limit(1)).first() if looked else None
    return Page(items, None if edge is None else _cursor(sort, edge.at, edge.id))


def _of_group(
    connection: Connection, filters: FailureFilter, *, now: datetime, limit: int, cursor: str | None, sort: FailureSort
) -> Page[FailureRow]:
    """The failures of all fingerprints of a group: a page of each, and the first of all of those."""
    number = int(filters.group or 0)
    prints = connection.execute(
        select(group_fingerprints.c.fingerprint).where(group_fingerprints.c.group_id == min(number, _HIGHEST))
    ).scalars()
    parts = [
        page(connection, replace(filters, group=one), now=now, limit=limit, cursor=cursor, sort=sort)
        for one in sorted(prints)[:GROUP_FINGERPRINTS]
    ]
    by_cost = sort == "-gpu_hours_lost"

    def place(row: FailureRow) -> tuple[float | datetime, int]:
        return (row.gpu_hours_lost if by_cost else row.ended_at, row.id)

    items = sorted((row for part in parts for row in part.items), key=place, reverse=sort.startswith("-"))
    if len(items) > limit:
        return Page(tuple(items[:limit]), _cursor(sort, *place(items[limit - 1])))
    ends = [part.next_cursor for part in parts if part.next_cursor is not None]
    if not ends:
        return Page(tuple(items))
    # A part that stopped early, in a search, is gone on with from where the first of them stopped.
    kinds = (float if by_cost else str, int)
    first = (max if sort.startswith("-") else min)(ends, key=lambda end: cursors.decode(end, f"failures{sort}", *kinds))
    return Page(tuple(items), first)


def _order(at: ColumnElement[Any], failure_id: ColumnElement[int], sort: FailureSort) -> list[ColumnElement[Any]]:
    return [at.desc(), failure_id.desc()] if sort.startswith("-") else [at.asc(), failure_id.asc()]


def _cursor(sort: FailureSort, at: datetime | float, failure_id: int) -> str:
    return cursors.encode(f"failures{sort}", at.isoformat() if isinstance(at, datetime) else at, failure_id)


@dataclass(frozen=True, slots=True)
class Narrow:
    """What one index gives in the list's order, and what has to be looked at in each of its rows."""

    rows: Select[Any]
    at: ColumnElement[Any]
    failure_id: ColumnElement[int]
    rest: tuple[tuple[str, Callable[[ColumnElement[Any]], ColumnElement[bool]]], ...] = ()

    def passes(self, window: FromClause) -> list[ColumnElement[bool]]:
        """The rest, of some of the rows."""
        return [test(window.c[name]) for name, test in self.rest]


def narrowed_to(
    filters: FailureFilter, known: Sequence[int] | None, *, now: datetime, by_cost: bool, sqlite: bool
) -> Narrow:
    """The ids that pass the filters, of `known` where given, with the columns of the order: the serving index's."""
    ended_at: ColumnElement[datetime] = failures.c.ended_at
    at: ColumnElement[Any] = failures.c.gpu_hours_lost if by_cost else failures.c.ended_at
    failure_id: ColumnElement[int] = failures.c.id
    by_node = filters.node is not None and not by_cost
    if by_node:
        at, ended_at, failure_id = failure_nodes.c.ended_at, failure_nodes.c.ended_at, failure_nodes.c.failure_id
    short = filters.since is not None and (filters.until or now) - filters.since <= SORTED
    if by_cost and short:
        at = failures.c.gpu_hours_lost + literal_column("0.0")  # those of the time, sorted: no index has both
    conditions: list[ColumnElement[bool]] = []
    tests = _tests(filters)
    # One filter chooses the index, the first, which leaves fewest rows; a few known rows need none.
    bounded = known is not None or filters.visible is not None or (by_cost and short)
    driving = [] if by_node or (by_cost and not short) else tests[:1]
    inside = tests if bounded else driving
    for name, test in inside:
        # SQLite, which knows little of frequencies, might take another's index; it leaves an expression alone.
        free = not sqlite or (known is None and not by_node and (name, test) in driving)
        conditions.append(test(failures.c[name] if free else literal_column(f"+failures.{name}")))
    rest = [one for one in tests if one not in inside]
    times = _times(filters)
    if by_cost and not bounded:
        rest += [("ended_at", test) for test in times]
    else:
        conditions += [test(ended_at) for test in times]
    if known is not None:
        conditions.append(failure_id.in_(known))
    if filters.visible is not None:
        conditions.append(_visible(filters.visible))
    asked = dict.fromkeys(name for name, _ in rest)
    wanted = select(failure_id.label("id"), at.label("at"), *(failures.c[name].label(f"own_{name}") for name in asked))
    if filters.node is not None:
        if by_cost or inside or rest or filters.q is not None or filters.visible is not None:
            wanted = wanted.join_from(failure_nodes, failures, failures.c.id == failure_nodes.c.failure_id)
        conditions.append(failure_nodes.c.node == clean(filters.node))
    rows = wanted.where(and_(*conditions)) if conditions else wanted
    return Narrow(rows, at, failure_id, tuple((f"own_{name}", test) for name, test in rest))


_Test = Callable[[ColumnElement[Any]], ColumnElement[bool]]


def _tests(filters: FailureFilter) -> list[tuple[str, _Test]]:
    """By column what its value has to be; those that leave fewest rows first."""

    def equal(value: str) -> _Test:
        return lambda column: column == clean(value)

    found = [
        (column.name, equal(value)) for name, column in _EQUAL.items() if (value := getattr(filters, name)) is not None
    ]
    if filters.abstained is not None:
        found.append(("abstained", (lambda column: column) if filters.abstained else (lambda column: ~column)))
    return found


def _times(filters: FailureFilter) -> list[_Test]:
    since, until = filters.since, filters.until
    found: list[_Test] = []
    if since is not None:
        found.append(lambda column: column >= literal(utc(since), UtcDateTime))
    if until is not None:
        found.append(lambda column: column < literal(utc(until), UtcDateTime))
    return found


def _visible(visible: Visible) -> ColumnElement[bool]:
    """Of these users or teams; of nobody where none is named."""
    users = [
        failures.c.user_name == clean(user)
        if cluster is None
        else and_(failures.c.user_name == clean(user), failures.c.cluster == clean(cluster))
        for cluster, user in visible.users
    ]
    return or_(false(), *users, failures.c.team.in_([clean(team) for team in visible.teams]))


def _beyond(
    cursor: str, sort: FailureSort, at: ColumnElement[Any], failure_id: ColumnElement[int]
) -> ColumnElement[bool]:
    by_cost = sort == "-gpu_hours_lost"
    position, last = cursors.decode(cursor, f"failures{sort}", float if by_cost else str, int)
    if by_cost:
        edge = literal(position)
    else:
        try:
            edge = literal(utc(datetime.fromisoformat(position).replace(tzinfo=EARLIEST.tzinfo)), UtcDateTime)
        except ValueError:
            raise cursors.bad(cursor) from None
    here = tuple_(at, failure_id)
    there = tuple_(edge, literal(last))
    return here < there if sort.startswith("-") else here > there


def row_of(row: Row[Any]) -> FailureRow:
    """One line of the list, from a row of `failures` with JOB_FACTS."""
    return FailureRow(
        id=row.id,
        cluster=row.cluster,
        job_id=row.job_id,
        attempt=row.attempt,
        name=row.name,
        status=row.status,
        user=row.user_name,
        team=row.team,
        queue=row.queue,
        nodes=nodes_of(row.nodes),
        gpus=row.gpus,
        started_at=row.started_at,
        ended_at=row.ended_at,
        received_at=row.received_at,
        gpu_hours_lost=row.gpu_hours_lost,
        side=row.side,
        cause=row.cause,
        category=row.category,
        symptom=row.symptom,
        platform_symptom=row.platform_symptom,
        confidence=row.confidence,
        abstained=row.abstained,
        retry_outlook=row.retry_outlook,
        fingerprint=row.fingerprint,
        decision=row.decision,
        resubmit=row.resubmit,
        headline=row.headline,
        suspect_node=row.suspect_node,
        suspect_rank=row.suspect_rank,
        version=row.version,
        source=row.source,
        counted=row.counted,
    )
