"""The failures list: filters, order and keyset paging, each served by an index of its own."""

from datetime import datetime
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, literal, literal_column, select, tuple_

from service.errors import FieldError, InvalidInput
from service.store import cursor as cursors
from service.store.bulk import is_postgres
from service.store.job_rows import nodes_of
from service.store.records import FailureFilter, FailureRow, FailureSort, Page
from service.store.tables import failure_nodes, failures, jobs
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


# No index serves `q`: it looks at this many rows that pass the other filters, and the cursor goes on from there.
Q_WINDOW = 10_000


def page(
    connection: Connection, filters: FailureFilter, *, limit: int, cursor: str | None, sort: FailureSort
) -> Page[FailureRow]:
    """See `Failures.page`."""
    cursors.check_limit(limit)
    if sort not in get_args(FailureSort):
        expected = "one of " + ", ".join(get_args(FailureSort))
        raise InvalidInput(f"sort: expected {expected}", (FieldError("sort", expected, str(sort)[:40]),))
    by_cost = sort == "-gpu_hours_lost"
    narrowed, at, failure_id = _narrowed(filters, by_cost=by_cost, sqlite=not is_postgres(connection))
    if cursor is not None:
        narrowed = narrowed.where(_beyond(cursor, sort, at, failure_id))
    narrowed = narrowed.order_by(*_order(at, failure_id, sort))
    words = clean(filters.q or "").lower().split()
    # The page's rows are found in one index first; only they are joined with their attempts.
    if words:
        # The window brings the text along and is in order: the search stops with the page, whatever the plan.
        window = narrowed.add_columns(failures.c.headline).limit(Q_WINDOW).subquery()
        found = (
            select(window.c.id, window.c.at)
            .where(*(func.lower(window.c.headline).contains(word, autoescape=True) for word in words))
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
    edge = connection.execute(narrowed.offset(Q_WINDOW - 1).limit(1)).first() if words else None
    return Page(items, None if edge is None else _cursor(sort, edge.at, edge.id))


def _order(at: ColumnElement[Any], failure_id: ColumnElement[int], sort: FailureSort) -> list[ColumnElement[Any]]:
    return [at.desc(), failure_id.desc()] if sort.startswith("-") else [at.asc(), failure_id.asc()]


def _cursor(sort: FailureSort, at: datetime | float, failure_id: int) -> str:
    return cursors.encode(f"failures{sort}", at.isoformat() if isinstance(at, datetime) else at, failure_id)


def _narrowed(
    filters: FailureFilter, *, by_cost: bool, sqlite: bool
) -> tuple[Select[Any], ColumnElement[Any], ColumnElement[int]]:
    """The ids that pass the filters, with the columns of the order: those of the index that will serve it."""
    at: ColumnElement[Any] = failures.c.gpu_hours_lost if by_cost else failures.c.ended_at
    failure_id: ColumnElement[int] = failures.c.id
    ended_at: ColumnElement[datetime] = failures.c.ended_at
    if filters.node is not None and not by_cost:
        at, ended_at, failure_id = failure_nodes.c.ended_at, failure_nodes.c.ended_at, failure_nodes.c.failure_id
    wanted = select(failure_id.label("id"), at.label("at"))
    conditions: list[ColumnElement[bool]] = []
    for name, column in _EQUAL.items():
        value = getattr(filters, name)
        if value is not None:
            # The filter that leaves fewest rows may choose the index. SQLite, which knows little of frequencies,
            # might take any; it leaves an expression alone. PostgreSQL knows better than we do.
            free = not sqlite or (not conditions and filters.node is None)
            conditions.append((column if free else literal_column(f"+failures.{column.name}")) == clean(value))
    if filters.abstained is not None:
        conditions.append(failures.c.abstained if filters.abstained else ~failures.c.abstained)
    if filters.node is not None:
        if by_cost or conditions or filters.q is not None:
            wanted = wanted.join_from(failure_nodes, failures, failures.c.id == failure_nodes.c.failure_id)
        conditions.append(failure_nodes.c.node == clean(filters.node))
    if filters.since is not None:
        conditions.append(ended_at >= utc(filters.since))
    if filters.until is not None:
        conditions.append(ended_at < utc(filters.until))
    return wanted.where(and_(*conditions)) if conditions else wanted, at, failure_id


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
