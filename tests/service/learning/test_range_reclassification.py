"""Ranges of ids: each is stored once, whoever classifies it, and an interrupted run goes on."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from service.db.session import Store
from service.failures.records import FailureFilter
from service.learning.reclassification import Range, classify_range, ranges
from service.learning.records import ReclassificationRun
from tests.service.frozen_clock import FrozenClock
from tests.service.learning.test_retraining import KEY, LICENCE, reclassification
from tests.service.learning.world import World


@pytest.fixture
def dialect(request: pytest.FixtureRequest) -> str:
    """SQLite, where a test does not ask for both databases."""
    chosen: str = getattr(request, "param", "sqlite")
    return chosen


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)
def test_a_range_is_stored_once_by_the_first_of_two_workers(
    open_store: Callable[[], Store], world: World, clock: FrozenClock, model: Path
) -> None:
    rows = [world.fails(LICENCE.format(n=number)) for number in range(4)]
    world.label(rows[0], "user", "USER.4")
    world.retrain()
    other = World(open_store(), clock, model)
    filters = FailureFilter(since=clock.now() - timedelta(days=1))
    with world.store.reading() as reading:
        bounds = reading.failure_ranges.bounds(filters)
    assert bounds == (rows[0].id, rows[-1].id)
    with world.store.unit_of_work() as work:
        run = work.reclassification_runs.open("name", clock.now(), *bounds)
    one = Range(run.id, filters, rows[0].id, rows[-1].id + 1)
    dry = classify_range(world.store, reclassification(world), replace(one, run_id=None))
    done = classify_range(world.store, reclassification(world), one)
    assert dry == done
    assert done is not None
    assert (done.read, done.changed, done.people) == (3, 3, 1)
    assert classify_range(other.store, reclassification(other), one) is None
    with world.store.unit_of_work() as work:
        assert not work.reclassification_runs.mark(run.id, one.first, done), "a slow worker comes too late"
    with world.store.reading() as reading:
        assert [reading.failures.get(row.id).row.version for row in rows] == [2, 2, 2, 2]
        assert reading.reclassification_runs.totals(run.id) == done


def test_an_unfinished_run_continues_with_its_own_failures(world: World, clock: FrozenClock) -> None:
    with world.store.unit_of_work() as work:
        first = work.reclassification_runs.open("name", clock.now(), 1, 10)
    clock.at += timedelta(hours=1)
    with world.store.unit_of_work() as work:
        assert work.reclassification_runs.open("name", clock.now(), 5, 20) == first
        assert work.reclassification_runs.open("another", clock.now(), 5, 20) != first
        work.reclassification_runs.finish(first.id)
        assert work.reclassification_runs.open("name", clock.now(), 5, 20).first == 5


def test_ranges_hold_each_id_once(clock: FrozenClock) -> None:
    found = list(ranges(ReclassificationRun(1, clock.now(), 3, 12), 4))
    assert found == [(3, 7), (7, 11), (11, 13)]


def test_a_range_holds_the_failures_that_match_the_filters(world: World) -> None:
    rows = [world.fails(LICENCE.format(n=1)), world.fails(KEY.format(n=1)), world.fails(KEY.format(n=2))]
    with world.store.reading() as reading:
        found = reading.failure_ranges

        def ids(filters: FailureFilter) -> list[int]:
            return [one.id for one in found.between(filters, rows[0].id, rows[2].id)]

        assert ids(FailureFilter()) == [rows[0].id, rows[1].id]
        assert ids(FailureFilter(side=rows[1].side, cluster="orion")) == [rows[1].id]
        assert ids(FailureFilter(cluster="elsewhere")) == []
        assert ids(FailureFilter(node="gpu1")) == []
        assert found.bounds(FailureFilter(since=world.clock.now() + timedelta(days=1))) is None
