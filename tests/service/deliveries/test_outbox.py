import threading
from collections.abc import Callable
from datetime import timedelta

from service.db.session import Store
from service.deliveries.records import OutboxMessage
from tests.service.frozen_clock import FrozenClock


def message(number: int) -> OutboxMessage:
    return OutboxMessage("failure.diagnosed", f"orion/{number}", {"n": number, "text": "é" * 2_000})


def test_messages_are_leased_in_order_once_and_come_back_when_the_lease_ends(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        work.outbox.add([message(n) for n in range(3)])
        work.outbox.add([])
    with store.unit_of_work() as work:
        first = work.outbox.lease("a", limit=2, seconds=30)
        rest = work.outbox.lease("b", limit=2, seconds=30)
    assert [one.payload["n"] for one in first] == [0, 1]
    assert [one.payload["n"] for one in rest] == [2]
    assert (first[0].type, first[0].key, first[0].attempts) == ("failure.diagnosed", "orion/0", 1)
    clock.sleep(30)
    with store.unit_of_work() as work:
        again = work.outbox.lease("b", limit=9, seconds=30)
        assert [(one.id, one.attempts) for one in again] == [(one.id, 2) for one in [*first, *rest]]


def test_only_the_holder_reports_the_result_of_a_message(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        work.outbox.add([message(n) for n in range(3)])
        ids = [one.id for one in work.outbox.lease("a", limit=9, seconds=30)]
        assert work.outbox.done("b", ids) == 0
        assert work.outbox.done("a", ids[:1]) == 1
        assert work.outbox.done("a", ids[:1]) == 0
    clock.sleep(30)
    with store.unit_of_work() as work:
        assert [one.id for one in work.outbox.lease("b", limit=9, seconds=30)] == ids[1:]


def test_rivals_share_the_work(open_store: Callable[[], Store]) -> None:
    with open_store().unit_of_work() as work:
        work.outbox.add([message(n) for n in range(40)])
    gate = threading.Barrier(4)
    got: list[int] = []
    failed: list[BaseException] = []

    def drain(store: Store, owner: str) -> None:
        try:
            gate.wait(60)
            while True:
                with store.unit_of_work() as work:
                    leased = [one.id for one in work.outbox.lease(owner, limit=3, seconds=60)]
                    work.outbox.done(owner, leased)
                if not leased:
                    return
                got.extend(leased)
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failed.append(error)

    threads = [threading.Thread(target=drain, args=(open_store(), f"w{n}")) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(got) == len(set(got)) == 40


def test_a_message_without_receivers_is_removed_after_its_time(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("a", "k", {}), OutboxMessage("b", "k", {})])
    clock.sleep(60)
    with store.unit_of_work() as work:
        work.outbox.add([OutboxMessage("c", "k", {})])
        assert work.outbox.pass_over(clock.now() - timedelta(seconds=30), limit=100) == 2
        assert [one.type for one in work.outbox.lease("me", limit=9, seconds=5)] == ["c"]
