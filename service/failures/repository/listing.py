"""The failures list: filters, order and keyset paging, each served by its own index."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Subquery,
    and_,
    func,
    literal,
    literal_column,
    select,
    tuple_,
)

from service.contracts.event import FAILURE_STATUSES
from service.contracts.page import Page
from service.errors import FieldError, InvalidInput
from service.failures.records import COUNTED_AS_FAILED, FailureFilter, FailureRow, FailureSort
from service.failures.repository import job_search, search
from service.failures.tables import failure_nodes, failures
from service.jobs.repository.row_mapping import nodes_of
from service.jobs.tables import jobs
from service.sql import paging as cursors
from service.sql.bulk import is_postgres
from service.sql.types import UtcDateTime, clean, utc

Position = tuple[str | float, int]  # of a row in the list: its end time or its cost, and its id

# Columns of a list row that come from the attempt that opened the failure.
JOB_FACTS = (
    jobs.c.job_id,
    jobs.c.attempt,
    jobs.c.name,
    jobs.c.nodes,
    jobs.c.gpus,
    jobs.c.started_at,
    jobs.c.received_at,
)
# The most selective first.
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


# Rare words are looked up first. Tests that no index serves (common words, further filters besides the one that
# chose the index) examine this many rows of that index; the cursor continues from there.
Q_FEW = 2_000
Q_WINDOW = 10_000
BY_COST: FailureSort = "-gpu_hours_lost"
SORTED = timedelta(
    days=28
)  # shorter periods are sorted by cost; for longer ones the most expensive failures are examined


@dataclass(frozen=True, slots=True)
class SearchedWords:
    """The words of a search and the failures that contain them; None if there are no words or too many failures."""

    words: tuple[str, ...]
    known: list[int] | None = None

    @property
    def common(self) -> bool:
        """Whether many failures contain them: then each row has to be examined."""
        return bool(self.words) and self.known is None


def look_up_words(connection: Connection, filters: FailureFilter) -> SearchedWords:
    """Look up the words and the job of a filter, once for all of its parts."""
    words = search.query_words(filters.q or "")
    if filters.job is not None:
        found = job_search.find(connection, filters.job, cluster=filters.cluster)
        return SearchedWords(words, search.with_words(connection, found, words) if words and found else found)
    if words:
        return SearchedWords(words, search.find_rare(connection, words, most=Q_FEW))
    return SearchedWords(
        (), [] if (filters.q or "").strip() else None
    )  # evidence contains no word that consists of punctuation only


def page(
    connection: Connection,
    filters: FailureFilter,
    searched: SearchedWords,
    *,
    now: datetime,
    limit: int,
    cursor: str | None,
    sort: FailureSort,
) -> Page[FailureRow]:
    """One part of a filter (service.failures.repository.list_parts), otherwise as `FailureReader.page`."""
    rows_found = row_search(connection, filters, searched, now=now, cursor=cursor, sort=sort)
    # The rows of the page are found in one index first; only these are joined with their attempts.
    found = rows_found.found(limit + 1)
    rows = connection.execute(
        select(failures, *JOB_FACTS)
        .join(found, found.c.id == failures.c.id)
        .join(jobs, jobs.c.id == failures.c.id)
        .order_by(*_order(found.c.at, found.c.id, sort))
    ).all()
    items = tuple(row_of(row) for row in rows[:limit])
    if len(rows) > limit:
        return Page(items, encode_position(sort, *position_of(items[-1], sort)))
    edge = rows_found.edge(connection)
    return Page(items, None if edge is None else encode_position(sort, _position(edge.at), edge.id))


@dataclass(frozen=True, slots=True)
class RowSearch:
    """How the rows of a part are found: in the order of one index, in a window of it if rows need further tests."""

    narrowed: Select[Any]
    order: Callable[[FromClause], list[ColumnElement[Any]]]
    passes: Callable[[FromClause], list[ColumnElement[bool]]] | None
    sqlite: bool

    def found(self, most: int) -> Subquery:
        """The first matching rows, at most `most`: `id` and `at`."""
        if self.passes is None:
            return self.narrowed.limit(most).subquery()
        # The window is ordered: the search stops when the page is full, whatever the plan. SQLite reads a limited
        # subquery in its own order; asked for that order again, it would read and sort the whole window.
        window = self.narrowed.limit(Q_WINDOW).subquery("searched")
        passing = select(window.c.id, window.c.at).where(*self.passes(window)).limit(most)
        return (passing if self.sqlite else passing.order_by(*self.order(window))).subquery()

    def edge(self, connection: Connection) -> Row[Any] | None:
        """The last row of a full window, where the search stopped."""
        if self.passes is None:
            return None
        return connection.execute(self.narrowed.offset(Q_WINDOW - 1).limit(1)).first()


def row_search(
    connection: Connection,
    filters: FailureFilter,
    searched: SearchedWords,
    *,
    now: datetime,
    cursor: str | None = None,
    sort: FailureSort = "-ended_at",
) -> RowSearch:
    """The search for the rows of one part of a filter."""
    sqlite = not is_postgres(connection)
    narrow = index_scan(filters, searched.known, now=now, by_cost=sort == BY_COST, sqlite=sqlite)
    narrowed = narrow.rows
    if cursor is not None:
        narrowed = narrowed.where(_beyond(cursor, sort, narrow.at, narrow.failure_id))

    def passes(window: FromClause) -> list[ColumnElement[bool]]:
        own = narrow.passes(window)
        return [*own, search.has_words(connection, "searched.id", searched.words)] if searched.common else own

    return RowSearch(
        narrowed.order_by(*_order(narrow.at, narrow.failure_id, sort)),
        lambda rows: _order(rows.c.at, rows.c.id, sort),
        passes if searched.common or narrow.rest else None,
        sqlite,
    )


def check(limit: int, cursor: str | None, sort: FailureSort) -> None:
    """Check the arguments of a page.

    Raises:
        InvalidInput: a limit out of range, an unknown order, or a cursor of another list or order.
    """
    cursors.check_limit(limit)
    if sort not in get_args(FailureSort):
        expected = "one of " + ", ".join(get_args(FailureSort))
        raise InvalidInput(f"sort: expected {expected}", (FieldError("sort", expected, str(sort)[:40]),))
    if cursor is not None:
        _edge(cursor, sort)


def position_of(row: FailureRow, sort: FailureSort) -> Position:
    """The position of a row in the list."""
    return _position(row.gpu_hours_lost if sort == BY_COST else row.ended_at), row.id


def _position(at: datetime | float) -> str | float:
    return at.isoformat() if isinstance(at, datetime) else at


def decode_position(cursor: str, sort: FailureSort) -> Position:
    """The position that a cursor encodes.

    Raises:
        InvalidInput: it is not a cursor of this list in this order.
    """
    position, last = cursors.decode(cursor, f"failures{sort}", float if sort == BY_COST else str, int)
    return position, last


def encode_position(sort: FailureSort, position: str | float, failure_id: int) -> str:
    """The cursor that continues after a position."""
    return cursors.encode(f"failures{sort}", position, failure_id)


def _order(at: ColumnElement[Any], failure_id: ColumnElement[int], sort: FailureSort) -> list[ColumnElement[Any]]:
    return [at.desc(), failure_id.desc()] if sort.startswith("-") else [at.asc(), failure_id.asc()]


@dataclass(frozen=True, slots=True)
class IndexScan:
    """The rows that one index yields in list order, and the tests that each row still needs."""

    rows: Select[Any]
    at: ColumnElement[Any]
    failure_id: ColumnElement[int]
    rest: tuple[tuple[str, Callable[[ColumnElement[Any]], ColumnElement[bool]]], ...] = ()

    def passes(self, window: FromClause) -> list[ColumnElement[bool]]:
        """The remaining tests, on the rows of a window."""
        return [test(window.c[name]) for name, test in self.rest]


def index_scan(
    filters: FailureFilter, known: Sequence[int] | None, *, now: datetime, by_cost: bool, sqlite: bool
) -> IndexScan:
    """The ids that match the filters (within `known` if given), with the order columns of the serving index."""
    ended_at: ColumnElement[datetime] = failures.c.ended_at
    at: ColumnElement[Any] = failures.c.gpu_hours_lost if by_cost else failures.c.ended_at
    failure_id: ColumnElement[int] = failures.c.id
    by_node = filters.node is not None and not by_cost
    if by_node:
        at, ended_at, failure_id = failure_nodes.c.ended_at, failure_nodes.c.ended_at, failure_nodes.c.failure_id
    short = filters.since is not None and (filters.until or now) - filters.since <= SORTED
    if by_cost and short:
        at = failures.c.gpu_hours_lost + literal_column(
            "0.0"
        )  # the rows of the period are sorted: no index has both columns
    conditions: list[ColumnElement[bool]] = []
    tests = equality_tests(filters)
    # The first, most selective filter chooses the index if it has one; a small set of known rows needs none.
    bounded = known is not None or (by_cost and short)
    driving = [] if by_node or (by_cost and not short) else [one for one in tests[:1] if one[0] not in _NO_INDEX]
    inside = tests if bounded else driving
    for name, test in inside:
        # SQLite has few statistics and might choose another index; it uses no index for an expression.
        free = not sqlite or (known is None and not by_node and (name, test) in driving)
        conditions.append(test(failures.c[name] if free else literal_column(f"+failures.{name}")))
    rest = [one for one in tests if one not in inside]
    times = time_tests(filters)
    if by_cost and not bounded:
        rest += [("ended_at", test) for test in times]
    else:
        # SQLite's estimate of a period is a quarter of the table, for which it may prefer an index without the cost.
        rare = sqlite and by_cost and not tests
        conditions += [func.unlikely(test(ended_at)) if rare else test(ended_at) for test in times]
    if known is not None:
        conditions.append(failure_id.in_(known))
    columns = dict.fromkeys(name for name, _ in rest)
    wanted = select(
        failure_id.label("id"), at.label("at"), *(failures.c[name].label(f"own_{name}") for name in columns)
    )
    if filters.node is not None:
        if by_cost or inside or rest or filters.q is not None:
            wanted = wanted.join_from(failure_nodes, failures, failures.c.id == failure_nodes.c.failure_id)
        conditions.append(failure_nodes.c.node == clean(filters.node))
    rows = wanted.where(and_(*conditions)) if conditions else wanted
    return IndexScan(rows, at, failure_id, tuple((f"own_{name}", test) for name, test in rest))


_Test = Callable[[ColumnElement[Any]], ColumnElement[bool]]
_FAILED = tuple(sorted(FAILURE_STATUSES))
_NO_INDEX = ("suspect_node", "counted")


def equality_tests(filters: FailureFilter) -> list[tuple[str, _Test]]:
    """The tests by column, the most selective first."""

    def equal(value: str) -> _Test:
        return lambda column: column == clean(value)

    found = [
        (column.name, equal(value))
        for name, column in _EQUAL.items()
        if (value := getattr(filters, name)) is not None and (name, value) != ("status", COUNTED_AS_FAILED)
    ]
    if filters.status == COUNTED_AS_FAILED:  # several statuses: no index yields them in the order of the list
        found.append(("counted", lambda column: column))
        found.append(("status", lambda column: column.in_(_FAILED)))
    if filters.abstained is not None:
        found.append(("abstained", (lambda column: column) if filters.abstained else (lambda column: ~column)))
    if filters.suspect is not None:  # the rule of classifiers.suspected_place
        found.append(("suspect_node", equal(filters.suspect)))
        found.append(("abstained", lambda column: ~column))
        found.append(("side", lambda column: column != "user"))
    return found


def time_tests(filters: FailureFilter) -> list[_Test]:
    """The tests of the time at which a failure ended."""
    since, until = filters.since, filters.until
    found: list[_Test] = []
    if since is not None:
        found.append(lambda column: column >= literal(utc(since), UtcDateTime))
    if until is not None:
        found.append(lambda column: column < literal(utc(until), UtcDateTime))
    return found


def _beyond(
    cursor: str, sort: FailureSort, at: ColumnElement[Any], failure_id: ColumnElement[int]
) -> ColumnElement[bool]:
    here, there = tuple_(at, failure_id), tuple_(*_edge(cursor, sort))
    return here < there if sort.startswith("-") else here > there


def _edge(cursor: str, sort: FailureSort) -> tuple[ColumnElement[Any], ColumnElement[int]]:
    position, last = decode_position(cursor, sort)
    at = literal(cursors.instant(cursor, position), UtcDateTime) if isinstance(position, str) else literal(position)
    return at, literal(last)


def row_of(row: Row[Any]) -> FailureRow:
    """One row of the list, from a row of `failures` with JOB_FACTS."""
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
