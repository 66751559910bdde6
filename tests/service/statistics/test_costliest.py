"""The costliest failures of a period are those of the list in this order, whatever comes late."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from service.db.session import Store
from service.failures.records import FailureFilter
from service.statistics.records import Scope
from service.statistics.repository import versions
from tests.service.sample_rows import NOON, job, put, verdict

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
UNTIL = NOON + timedelta(minutes=5)
MOST = 5


def count(store: Store) -> None:
    with store.unit_of_work() as work:
        work.rollups.recount(NOON, limit=1_000)


def costliest(store: Store, length: timedelta, scope: Scope, *, later_too: bool) -> tuple[list[int], list[int] | None]:
    """The ids in the list of failures, and those from kept counts."""
    since = UNTIL - length
    of_scope = FailureFilter(cluster=scope.cluster, team=scope.team, queue=scope.queue)
    own = replace(of_scope, since=since, until=None if later_too else UNTIL)
    with store.reading() as reading:

        def ids(filters: FailureFilter) -> list[tuple[float, int]]:
            found = reading.failures.page(filters, limit=MOST, sort="-gpu_hours_lost").items
            return [(one.gpu_hours_lost, one.id) for one in found]

        def of_span(begin: datetime, end: datetime) -> list[tuple[float, int]]:
            return ids(replace(of_scope, since=begin, until=end))

        kept = reading.statistics.costliest(since, UNTIL, scope, most=MOST, of_span=of_span, later_too=later_too)
        return [failure_id for _, failure_id in ids(own)], kept


def check(store: Store) -> None:
    for length in (5 * HOUR, DAY, 7 * DAY, 27 * DAY):
        for scope in (Scope(), Scope(cluster="orion"), Scope(team="t1", queue="q1"), Scope(team="nobody")):
            for later_too in (False, True):
                wanted, kept = costliest(store, length, scope, later_too=later_too)
                assert kept == wanted, (length, scope, later_too)


def failed(store: Store, number: int, ended_at: datetime, lost: float) -> int:
    fields = {"cluster": ("orion", "vega")[number % 2], "team": f"t{number % 3}", "queue": f"q{number % 2}"}
    [made] = put(store, [job(f"{number}", ended_at=ended_at, gpu_hours_lost=lost, **fields)])
    return made.failure_id or 0


def test_they_are_those_of_the_list(open_store: Callable[[], Store]) -> None:
    ours, other, rng = open_store(), open_store(), random.Random(3)
    ids = [failed(ours, n, NOON - rng.randrange(600) * HOUR, float(rng.randrange(6))) for n in range(80)]
    failed(ours, 80, UNTIL + HOUR, 9.0)  # by a clock that is wrong
    count(ours)
    for turn in range(3):
        check(ours)
        failed(other, 100 + turn, NOON - rng.randrange(100) * HOUR, 10.0 + turn)
        with other.unit_of_work() as work:
            work.failures.revise(rng.choice(ids), verdict(side="hardware", cause="HW.GPU.1"))
        check(ours)
        count(other)
    other.purge(rows_before=NOON - 10 * DAY)
    check(ours)


def test_they_are_not_kept_where_many_hours_are_stale_or_a_day_has_no_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed(store, 1, NOON - 5 * DAY, 1.0)
    assert costliest(store, 7 * DAY, Scope(), later_too=False)[1] is None
    count(store)
    assert costliest(store, 7 * DAY, Scope(), later_too=False)[1] is not None
    for number in range(4):
        failed(store, 2 + number, NOON - number * DAY - 4 * HOUR, 1.0)
    assert costliest(store, 7 * DAY, Scope(), later_too=False)[1] is None
    with monkeypatch.context() as patched:
        patched.setattr(versions, "write", lambda *_: None)
        count(store)
    assert costliest(store, 7 * DAY, Scope(), later_too=False)[1] is None
