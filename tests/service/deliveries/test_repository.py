from collections.abc import Callable
from datetime import timedelta

import pytest

from service.db.retention import PurgeResult
from service.db.session import Store
from service.deliveries.records import FailureFacts, NewDelivery, OutboxMessage
from service.errors import InvalidInput, NotFound
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job, put


def given(store: Store, count: int = 3, *endpoints: str) -> list[int]:
    with store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("failure.diagnosed", f"orion/{n}", {"n": n}) for n in range(count)])
        ids = [one.id for one in work.outbox.lease("a", limit=99, seconds=9)]
        work.deliveries.add([NewDelivery(one, name) for one in ids for name in endpoints or ("e",)])
        work.outbox.done("a", ids)
    return ids


def test_each_endpoint_has_its_own_deliveries(store: Store, clock: FrozenClock) -> None:
    ids = given(store, 3, "e", "f")
    with store.unit_of_work() as work:
        first = work.deliveries.lease("e", "a", limit=2, seconds=30)
        assert [one.message_id for one in first] == ids[:2]
        assert [one.payload["n"] for one in first] == [0, 1]
        assert [one.message_id for one in work.deliveries.lease("e", "b", limit=9, seconds=30)] == ids[2:]
        assert len(work.deliveries.lease("f", "b", limit=9, seconds=30)) == 3
        assert not work.deliveries.due("e")
    clock.sleep(30)
    with store.reading() as reading:
        assert reading.deliveries.due("e")
        assert not reading.deliveries.due("nobody")


def test_only_the_holder_reports_the_result(store: Store, clock: FrozenClock) -> None:
    [one, two, three] = given(store)
    later = clock.at + timedelta(seconds=60)
    with store.unit_of_work() as work:
        work.deliveries.lease("e", "a", limit=9, seconds=30)
        assert work.deliveries.sent("b", "e", [one]) == 0
        assert not work.deliveries.retry("b", "e", two, available_at=later, detail="x")
        assert work.deliveries.sent("a", "e", [one]) == 1
        assert work.deliveries.retry("a", "e", two, available_at=later, detail="503 " + "x" * 999)
        assert work.deliveries.release("a", "e", [three]) == 1
        assert [due.message_id for due in work.deliveries.lease("e", "b", limit=9, seconds=30)] == [three]
    clock.sleep(60)
    with store.unit_of_work() as work:
        again = {due.message_id: due.attempts for due in work.deliveries.lease("e", "b", limit=9, seconds=30)}
        assert again == {two: 1, three: 0}


def test_what_was_given_up_is_listed_and_can_be_sent_again(store: Store) -> None:
    ids = given(store, 3, "e", "f")
    with store.unit_of_work() as work:
        assert work.deliveries.give_up_all("e", "410") == 3
        with pytest.raises(NotFound):
            work.deliveries.send_again(ids[0], "f")  # it still waits
        with pytest.raises(NotFound):
            work.deliveries.send_again(ids[0], "nobody")
    with store.reading() as reading:
        first = reading.deliveries.page(limit=2)
        rest = reading.deliveries.page(limit=2, cursor=first.next_cursor)
        assert [one.message_id for one in (*first.items, *rest.items)] == ids[::-1]
        assert rest.next_cursor is None
        assert (first.items[0].endpoint, first.items[0].state, first.items[0].detail) == ("e", "given_up", "410")
        with pytest.raises(InvalidInput):
            reading.deliveries.page(limit=0)
    with store.unit_of_work() as work:
        work.deliveries.send_again(ids[1], "e")
        [due] = work.deliveries.lease("e", "a", limit=9, seconds=30)
        assert (due.message_id, due.attempts) == (ids[1], 0)


def test_retention_keeps_what_still_waits(store: Store, clock: FrozenClock) -> None:
    ids = given(store, 2)
    with store.unit_of_work() as work:
        work.deliveries.lease("e", "a", limit=1, seconds=30)
        work.deliveries.sent("a", "e", ids[:1])
    clock.sleep(10)
    assert store.purge(done_before=clock.at) == PurgeResult(outbox=1)
    with store.reading() as reading:
        assert reading.deliveries.page(state="sent").items == ()
        assert [one.message_id for one in reading.deliveries.page(state="waiting").items] == ids[1:]


def test_facts_for_routes_of_failures(store: Store) -> None:
    first, again = [
        one.failure_id or 0
        for one in put(store, [job("1", gpu_hours_lost=2.5), job("2", gpus=None)], fingerprint="1:a")
    ]
    with store.reading() as reading:
        assert reading.deliveries.facts([first, again, 10**9]) == {
            first: FailureFacts("failed", "ana", "vision", "gpu-long", 2.5, 4, new_kind=True),
            again: FailureFacts("failed", "ana", "vision", "gpu-long", 4.0),
        }


def test_two_processes_may_meet_an_endpoint_at_once(open_store: Callable[[], Store]) -> None:
    for _ in range(2):
        with open_store().unit_of_work() as work:
            assert work.endpoints.lock("e", "t").failures == 0
    with open_store().reading() as reading:
        assert list(reading.endpoints.all()) == ["e"]
