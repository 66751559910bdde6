"""Failures by ranges of their ids, for work that is divided between machines."""

from typing import Any

from sqlalchemy import ColumnElement, exists, func, select

from service.failures.records import FailureFilter, ListedFailure
from service.failures.repository.index_scan import equality_tests, time_tests
from service.failures.tables import failure_nodes, failures
from service.sql.reader import Reader
from service.sql.types import clean


class IdRangeReader(Reader):
    """Reads failures by ranges of ids. Filters by words, job and visibility are not supported."""

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
