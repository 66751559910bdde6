"""The failures of a period that lost the most GPU-hours, where those of its hours that are over are kept."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from sqlalchemy import Connection, Executable, Integer, bindparam, literal_column, select, union_all

from service.failures.tables import failures
from service.statistics.records import Scope
from service.statistics.repository.rollups import HOUR, PeriodParts
from service.statistics.repository.scope_conditions import in_numbered_range, range_values
from service.times import MAX_TIME

MOST_SPANS = 3  # of hours that are over, between stale ones: each is a question of its own
Costly = tuple[float, int]  # the GPU-hours that a failure lost, and its id
_Span = tuple[datetime, datetime]


def read(
    connection: Connection,
    parts: PeriodParts,
    scope: Scope,
    most: int,
    of_span: Callable[[datetime, datetime], Iterable[Costly]],
    after: datetime | None = None,
) -> list[int] | None:
    """The ids of the costliest failures that ended in a period, most first; None if counts of it are not kept.

    Args:
        connection: to the database.
        parts: of the period.
        scope: which failures count.
        most: the number of failures at most.
        of_span: reads the costliest ones of some hours that are over.
        after: failures that ended after this time count as well.
    """
    spans = _between(parts)
    if parts.cache is None or len(spans) > MOST_SPANS:
        return None
    key = (parts.first, parts.last, parts.noted, parts.version, "costliest", scope, most)
    of_hours = parts.cache.get(key, lambda: [one for since, until in spans for one in of_span(since, until)])
    ranges = [*parts.ranges, *([] if after is None else [(after, MAX_TIME)])]
    found = {*of_hours, *_of_rows(connection, ranges, scope, most)}
    return [failure_id for _, failure_id in sorted(found, reverse=True)[:most]]


def _between(parts: PeriodParts) -> list[_Span]:
    """The spans of a period between its stale hours."""
    begins, ends = (parts.first, *(hour + HOUR for hour in parts.noted)), (*parts.noted, parts.last)
    return [(begin, end) for begin, end in zip(begins, ends, strict=True) if begin < end]


def _of_rows(connection: Connection, ranges: Sequence[_Span], scope: Scope, most: int) -> list[Costly]:
    if not ranges:
        return []
    statement = _statement(tuple(scope.given()), len(ranges))
    values = {**range_values(scope, ranges), "most": most}
    return [(row.lost, row.id) for row in connection.execute(statement, values)]


@lru_cache(100)
def _statement(names: tuple[str, ...], many: int) -> Executable:
    wanted = []
    for number in range(many):
        inside = in_numbered_range(failures, number, names)
        # As an expression, so that no planner uses the index on the GPU-hours, in which no time is found.
        lost = failures.c.gpu_hours_lost + literal_column("0.0")
        ordered = select(failures.c.id, lost.label("lost")).where(*inside).order_by(lost.desc(), failures.c.id.desc())
        wanted.append(select(ordered.limit(bindparam("most", type_=Integer)).subquery()))
    return wanted[0] if many == 1 else union_all(*wanted)
