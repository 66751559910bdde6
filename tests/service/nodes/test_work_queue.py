"""Failures are reserved while they are reassessed; what is scheduled meanwhile stays."""

from datetime import timedelta

import pytest

from service.db.session import Store
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON

LEASE = timedelta(minutes=2)
LATER = timedelta(minutes=1)


def test_checked_failures_are_not_due_again(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        work.node_work.recheck({1: NOON, 2: NOON - LATER, 3: NOON + LATER})
    with store.unit_of_work() as work:
        reserved = work.node_work.due(limit=10)
        assert list(reserved) == [2, 1]
        assert not work.node_work.due(limit=10)
    with store.unit_of_work() as work:
        work.node_work.checked(reserved)
    clock.at = NOON + timedelta(days=1)
    with store.unit_of_work() as work:
        assert list(work.node_work.due(limit=10)) == [3]


@pytest.mark.parametrize("after", [timedelta(0), LATER])
def test_a_failure_that_is_rescheduled_while_it_is_checked_is_due_again(
    store: Store, clock: FrozenClock, after: timedelta
) -> None:
    with store.unit_of_work() as work:
        work.node_work.recheck({1: NOON, 2: NOON})
    with store.unit_of_work() as work:
        reserved = work.node_work.due(limit=10)
    with store.unit_of_work() as work:
        work.node_work.recheck({1: clock.now() + after})
    with store.unit_of_work() as work:
        work.node_work.checked(reserved)
    clock.at += after
    with store.unit_of_work() as work:
        assert list(work.node_work.due(limit=10)) == [1]
    clock.at += LEASE
    with store.reading() as reading:
        assert reading.node_work.any_due()


def test_a_reservation_that_has_ended_does_not_end_that_of_another_process(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        work.node_work.recheck({1: NOON})
    with store.unit_of_work() as work:
        first = work.node_work.due(limit=10)
    clock.at += LEASE
    with store.unit_of_work() as work:
        assert list(work.node_work.due(limit=10)) == [1]
    with store.unit_of_work() as work:
        work.node_work.checked(first)
    clock.at += LEASE
    with store.reading() as reading:
        assert reading.node_work.any_due()
