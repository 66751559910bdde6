from dataclasses import replace
from datetime import timedelta

from service.db.session import Store
from service.failures.records import PendingLog
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put


def entries(store: Store, clock: FrozenClock, count: int) -> list[PendingLog]:
    outcomes = put(store, [job(f"e{n}") for n in range(count)])
    return [
        PendingLog(
            outcome.failure_id or 0,
            outcome.id or 0,
            ({"rank": 0, "uri": "file:///logs/a.out"},),
            next_at=clock.at + timedelta(seconds=15 + n),
            until=clock.at + timedelta(minutes=30),
        )
        for n, outcome in enumerate(outcomes)
    ]


def test_entries_fall_due_in_order_and_round_trip(store: Store, clock: FrozenClock) -> None:
    given = entries(store, clock, 3)
    with store.unit_of_work() as work:
        work.pending_logs.add(given)
        work.pending_logs.add([])
        assert work.pending_logs.due() == []
    clock.sleep(16)
    with store.unit_of_work() as work:
        assert work.pending_logs.due() == given[:2]
        assert work.pending_logs.due(limit=1) == given[:1]
    with store.reading() as reading:
        assert reading.statistics.health(clock.at).pending_logs == 3


def test_a_deferred_entry_waits_and_counts_its_tries(store: Store, clock: FrozenClock) -> None:
    [given] = entries(store, clock, 1)
    clock.sleep(60)
    later = clock.at + timedelta(seconds=30)
    with store.unit_of_work() as work:
        work.pending_logs.add([given])
        work.pending_logs.defer(given.attempt_id, next_at=later)
        assert work.pending_logs.due() == []
    clock.sleep(30)
    with store.unit_of_work() as work:
        assert work.pending_logs.due() == [replace(given, tries=1, next_at=later)]
        work.pending_logs.done(given.attempt_id)
        assert work.pending_logs.due() == []


def test_a_later_entry_of_an_attempt_replaces_the_earlier_one(store: Store, clock: FrozenClock) -> None:
    [given] = entries(store, clock, 1)
    newer = replace(given, refs=({"rank": 1},), tries=4)
    clock.sleep(60)
    with store.unit_of_work() as work:
        work.pending_logs.add([given, newer])
        work.pending_logs.add([newer])
        assert work.pending_logs.due() == [newer]
