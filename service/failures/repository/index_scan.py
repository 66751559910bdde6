"""How one index finds the failures of a filter in the order of the list: by node, by time or by cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, func, literal, literal_column, select

from service.contracts.event import FAILURE_STATUSES
from service.failures.records import COUNTED_AS_FAILED, FailureFilter
from service.failures.tables import failure_nodes, failures
from service.sql.types import UtcDateTime, clean, utc

# Shorter periods are sorted by cost; for longer ones the most expensive failures are examined.
SORTED = timedelta(days=28)
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

_Test = Callable[[ColumnElement[Any]], ColumnElement[bool]]
_NamedTest = tuple[str, _Test]  # with the name of the column that it tests
_NO_INDEX = ("suspect_node", "counted")


@dataclass(frozen=True, slots=True)
class IndexScan:
    """The rows that one index yields in list order, and the tests that each row still needs."""

    rows: Select[Any]
    at: ColumnElement[Any]
    failure_id: ColumnElement[int]
    rest: tuple[_NamedTest, ...] = ()

    def passes(self, window: FromClause) -> list[ColumnElement[bool]]:
        """The remaining tests, on the rows of a window."""
        return [test(window.c[name]) for name, test in self.rest]


def index_scan(
    filters: FailureFilter, known: Sequence[int] | None, *, now: datetime, by_cost: bool, sqlite: bool
) -> IndexScan:
    """The ids that match the filters (within `known` if given), with the order columns of the serving index."""
    planner = _Planner(sqlite)
    if not by_cost:
        return (_by_time if filters.node is None else _by_node)(filters, known, planner)
    short = filters.since is not None and (filters.until or now) - filters.since <= SORTED
    return (_by_cost_of_period if short else _by_cost)(filters, known, planner)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Conditions as the planner of a database needs them."""

    sqlite: bool

    def free(self, tests: Sequence[_NamedTest]) -> list[ColumnElement[bool]]:
        """Tests for which the planner may use an index."""
        return [test(failures.c[name]) for name, test in tests]

    def filtering(self, tests: Sequence[_NamedTest]) -> list[ColumnElement[bool]]:
        """Tests of rows that another index finds.

        SQLite has few statistics and might choose an index of these columns; it uses no index for an expression.
        """
        if not self.sqlite:
            return self.free(tests)
        return [test(literal_column(f"+failures.{name}")) for name, test in tests]

    def period(self, times: Sequence[_Test], *, alone: bool) -> list[ColumnElement[bool]]:
        """Tests of the time at which a failure ended, in a list by cost; `alone`: there are no other tests.

        SQLite's estimate of a period is a quarter of the table, for which it may prefer an index without the cost.
        """
        tests = [test(failures.c.ended_at) for test in times]
        return [func.unlikely(test) for test in tests] if self.sqlite and alone else tests


def _by_node(filters: FailureFilter, known: Sequence[int] | None, planner: _Planner) -> IndexScan:
    """The index of the node's failures, whatever else is filtered."""
    tests = equality_tests(filters)
    conditions = [] if known is None else planner.filtering(tests)
    conditions += [test(failure_nodes.c.ended_at) for test in time_tests(filters)]
    return _scan(
        filters,
        known,
        conditions,
        at=failure_nodes.c.ended_at,
        failure_id=failure_nodes.c.failure_id,
        rest=tests if known is None else [],
        join=bool(tests) or filters.q is not None,
    )


def _by_time(filters: FailureFilter, known: Sequence[int] | None, planner: _Planner) -> IndexScan:
    """The index of the first, most selective filter if it has one, else that of the end; known rows need none."""
    tests = equality_tests(filters)
    driving = _driving(tests)
    conditions = planner.free(driving) if known is None else planner.filtering(tests)
    conditions += [test(failures.c.ended_at) for test in time_tests(filters)]
    rest = tests[len(driving) :] if known is None else []
    return _scan(filters, known, conditions, at=failures.c.ended_at, rest=rest)


def _by_cost_of_period(filters: FailureFilter, known: Sequence[int] | None, planner: _Planner) -> IndexScan:
    """The rows of a short period, sorted: no index has both the time and the cost."""
    tests = equality_tests(filters)
    driving = _driving(tests) if known is None else []
    conditions = planner.free(driving) + planner.filtering(tests[len(driving) :])
    conditions += planner.period(time_tests(filters), alone=not tests)
    return _scan(filters, known, conditions, at=failures.c.gpu_hours_lost + literal_column("0.0"))


def _by_cost(filters: FailureFilter, known: Sequence[int] | None, planner: _Planner) -> IndexScan:
    """The index of the cost; without known rows every other filter is tested on the rows of a window."""
    tests, times = equality_tests(filters), time_tests(filters)
    if known is None:
        conditions: list[ColumnElement[bool]] = []
        rest = [*tests, *(("ended_at", test) for test in times)]
    else:
        conditions = planner.filtering(tests) + planner.period(times, alone=not tests)
        rest = []
    return _scan(filters, known, conditions, at=failures.c.gpu_hours_lost, rest=rest)


def _driving(tests: Sequence[_NamedTest]) -> list[_NamedTest]:
    """The first test if it has an index."""
    return [one for one in tests[:1] if one[0] not in _NO_INDEX]


def _scan(
    filters: FailureFilter,
    known: Sequence[int] | None,
    conditions: Sequence[ColumnElement[bool]],
    *,
    at: ColumnElement[Any],
    failure_id: ColumnElement[int] = failures.c.id,
    rest: Sequence[_NamedTest] = (),
    join: bool = True,
) -> IndexScan:
    """The rows under the conditions, among the known ones and on the node of the filter.

    Args:
        filters: the filters.
        known: ids; None: all.
        conditions: on the rows.
        at: the column of the order.
        failure_id: the column of the id.
        rest: tests that the rows still need.
        join: with a node, whether columns of `failures` are needed as well.
    """
    every = [*conditions]
    if known is not None:
        every.append(failure_id.in_(known))
    columns = dict.fromkeys(name for name, _ in rest)
    rows = select(failure_id.label("id"), at.label("at"), *(failures.c[name].label(f"own_{name}") for name in columns))
    if filters.node is not None:
        if join:
            rows = rows.join_from(failure_nodes, failures, failures.c.id == failure_nodes.c.failure_id)
        every.append(failure_nodes.c.node == clean(filters.node))
    return IndexScan(
        rows.where(*every) if every else rows, at, failure_id, tuple((f"own_{name}", test) for name, test in rest)
    )


def equality_tests(filters: FailureFilter) -> list[_NamedTest]:
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
        found.append(("status", lambda column: column.in_(FAILURE_STATUSES)))
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
