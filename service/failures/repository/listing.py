"""The failures list: filters, order and keyset paging, each served by its own index; and failures by ranges of ids."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Subquery,
    exists,
    func,
    literal,
    select,
    tuple_,
)

from service.contracts.page import Page
from service.errors import FieldError, InvalidInput
from service.failures.records import FailureFilter, FailureRow, FailureSort, ListedFailure
from service.failures.repository import search
from service.failures.repository.index_scan import equality_tests, index_scan, time_tests
from service.failures.tables import failure_nodes, failures
from service.jobs.tables import jobs
from service.sql import paging as cursors
from service.sql.bulk import is_postgres
from service.sql.reader import Reader, record_of
from service.sql.types import UtcDateTime, clean, names_of

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
# Rare words are looked up first. Tests that no index serves (common words, further filters besides the one that
# chose the index) examine this many rows of that index; the cursor continues from there.
Q_FEW = 2_000
Q_WINDOW = 10_000
BY_COST: FailureSort = "-gpu_hours_lost"


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
        found = search.failures_of_job(connection, filters.job, cluster=filters.cluster)
        return SearchedWords(words, search.with_words(connection, found, words) if words and found else found)
    if words:
        return SearchedWords(words, search.find_rare(connection, words, most=Q_FEW))
    # Evidence contains no word that consists of punctuation only.
    return SearchedWords((), [] if (filters.q or "").strip() else None)


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
    return record_of(FailureRow, row, user=row.user_name, nodes=names_of(row.nodes))


class IdRangeReader(Reader):
    """Reads failures by ranges of ids, for work that is divided between machines.

    Filters by words, job and visibility are not supported.
    """

    def bounds(self, filters: FailureFilter) -> tuple[int, int] | None:
        """The lowest and the highest id of the failures that match; None if none does."""
        wanted = select(func.min(failures.c.id), func.max(failures.c.id)).where(*_conditions(filters))
        first, last = self._connection.execute(wanted).one()
        return None if first is None else (int(first), int(last))

    def between(self, filters: FailureFilter, first: int, until: int) -> list[ListedFailure]:
        """The failures that match with first ≤ id < until, in the order of the ids."""
        found = self._connection.execute(
            select(failures.c.id, failures.c.source)
            .where(failures.c.id >= first, failures.c.id < until, *_conditions(filters))
            .order_by(failures.c.id)
        )
        return [ListedFailure(row.id, row.source) for row in found]


def _conditions(filters: FailureFilter) -> list[ColumnElement[Any]]:
    found: list[ColumnElement[Any]] = [test(failures.c[name]) for name, test in equality_tests(filters)]
    found += [test(failures.c.ended_at) for test in time_tests(filters)]
    if filters.node is not None:
        of_failure = failure_nodes.c.failure_id == failures.c.id
        found.append(exists().where(of_failure, failure_nodes.c.node == clean(filters.node)))
    return found
