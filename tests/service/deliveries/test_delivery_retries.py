"""What would keep a delivery waiting, or send it twice: changed addresses, errors, digests, several processes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from service.db.session import Store
from service.deliveries.channels.channel import SENT, Outcome
from service.deliveries.drain import Drain, Target
from service.deliveries.records import DueDelivery, NewDelivery
from service.deliveries.tables import digests
from service.maintenance import WAITING_FOR, UndeliverableMessages
from tests.service.databases import connection_of
from tests.service.deliveries.receivers import receiver
from tests.service.deliveries.sample_messages import SENDING, drain, put, target, webhook
from tests.service.frozen_clock import FrozenClock

DIGEST_S = 3600.0
Act = Callable[[], object]


class Mailbox:
    """A channel that combines messages; `first` is called once, while the first ones are sent."""

    bulk = True

    def __init__(self, first: Act | None = None) -> None:
        self.got: list[list[str]] = []
        self.outcome = SENT
        self._first = first

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        act, self._first = self._first, None
        if act is not None:
            act()
        self.got.append([one.key for one in messages])
        return self.outcome

    def close(self) -> None:
        pass


class Fails(Mailbox):
    """Fails with an error of its own where a certain message is among them."""

    def __init__(self, *, bulk: bool) -> None:
        super().__init__()
        self.bulk = bulk

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        if any(one.key == "orion/2" for one in messages):
            raise ValueError("nobody expected this")
        return super().send(messages)


def mailbox(channel: Mailbox) -> Target:
    return replace(target("mail", channel), digest_s=DIGEST_S)


def drained(one: Drain) -> int:
    while one.route():
        pass
    total = 0
    for name in sorted(one.due()):
        while sent := one.deliver(name):
            total += sent
    return total


def digests_of(store: Store) -> dict[str, int]:
    """How many digests of each endpoint are noted."""
    counted = select(digests.c.endpoint, func.count()).group_by(digests.c.endpoint)
    with store.reading() as reading:
        return {row[0]: row[1] for row in connection_of(reading.deliveries).execute(counted)}


@pytest.mark.parametrize("status", [410, 429])
def test_an_endpoint_at_a_new_address_gets_its_messages(store: Store, clock: FrozenClock, status: int) -> None:
    put(store, 1)
    with receiver() as old:
        old.status, old.headers = status, {"Retry-After": "80000"}
        drained(drain(store, clock, [webhook("e", old.url, clock)]))
    put(store, 2)
    with receiver() as new:
        drained(drain(store, clock, [webhook("e", new.url, clock)]))
        assert len(new.got) == 1


@pytest.mark.parametrize("bulk", [True, False])
def test_a_message_that_cannot_be_sent_delays_no_other_and_is_given_up(
    store: Store, clock: FrozenClock, bulk: bool
) -> None:
    put(store, 1, 2, 3)
    channel = Fails(bulk=bulk)
    work = drain(store, clock, [target("e", channel)])
    drained(work)
    assert sorted(key for keys in channel.got for key in keys) == ["orion/1", "orion/3"]
    for pause in SENDING.schedule_s[1:]:
        clock.sleep(pause)
        drained(work)
    with store.reading() as reading:
        [lost] = reading.deliveries.page().items
    assert (lost.key, lost.attempts) == ("orion/2", len(SENDING.schedule_s))
    assert "ValueError" in (lost.detail or "")


def test_a_digest_with_an_unexpected_error_stays_one_message(store: Store, clock: FrozenClock) -> None:
    failing = Mailbox(lambda: 1 / 0)
    put(store, 1, 2, 3)
    work = drain(store, clock, [mailbox(failing)])
    drained(work)
    assert failing.got == []
    clock.sleep(SENDING.schedule_s[1])
    drained(work)
    assert failing.got == [["orion/1", "orion/2", "orion/3"]]


def test_an_impossible_host_name_is_a_failure_like_others(store: Store, clock: FrozenClock) -> None:
    put(store, 1)
    work = drain(store, clock, [webhook("e", "https://hooks..example.com/x", clock)])
    assert drained(work) == 1
    with store.reading() as reading:
        assert reading.endpoints.all()["e"].failures == 1


def test_a_digest_takes_all_that_waited_for_it(store: Store, clock: FrozenClock) -> None:
    channel = Mailbox()
    work = drain(store, clock, [mailbox(channel)])
    put(store, 0)
    drained(work)
    put(store, *range(1, 101))
    for _ in range(10):  # the next looks of the worker
        drained(work)
    clock.sleep(DIGEST_S)
    drained(work)
    assert [len(keys) for keys in channel.got] == [1, 100]


def test_two_processes_send_one_digest(open_store: Callable[[], Store], clock: FrozenClock) -> None:
    store, theirs = open_store(), Mailbox()
    second = drain(open_store(), clock, [mailbox(theirs)], owner="b")

    def meanwhile() -> None:
        put(store, 2)
        drained(second)

    ours = Mailbox(meanwhile)
    first = drain(store, clock, [mailbox(ours)])
    put(store, 1)
    drained(first)
    assert (ours.got, theirs.got) == ([["orion/1"]], [])
    clock.sleep(DIGEST_S)
    drained(second)
    assert theirs.got == [["orion/2"]]


def test_a_digest_that_was_not_sent_does_not_wait_for_the_next(store: Store, clock: FrozenClock) -> None:
    channel = Mailbox()
    channel.outcome = Outcome("retry", "the mail server is away")
    work = drain(store, clock, [mailbox(channel)])
    put(store, 1)
    drained(work)
    channel.outcome = SENT
    clock.sleep(SENDING.schedule_s[1])
    drained(work)
    assert channel.got == [["orion/1"], ["orion/1"]]


def test_without_a_delivery_file_nothing_waits_for_ever(store: Store, clock: FrozenClock) -> None:
    put(store, 1)
    drained(drain(store, clock, [target("e", channel := Mailbox())]))
    put(store, 2)
    drain(store, clock, [target("e", channel)]).route()
    clock.at += WAITING_FOR * 2
    UndeliverableMessages(store, clock)()  # the file was removed
    clock.at += timedelta(days=30)
    store.purge(rows_before=None, logs_before=None, verdicts_before=None, done_before=clock.at - timedelta(days=14))
    with store.reading() as reading:
        assert reading.deliveries.page(state="waiting").items == ()


def test_a_success_does_not_end_the_pause_that_another_process_was_asked_for(
    open_store: Callable[[], Store], clock: FrozenClock
) -> None:
    store, theirs = open_store(), Mailbox()
    theirs.outcome = Outcome("retry", "429", retry_after_s=7200, throttled=True)
    second = drain(open_store(), clock, [target("e", theirs)], owner="b")
    put(store, 1)

    def meanwhile() -> None:
        put(store, 2)
        drained(second)

    first = drain(store, clock, [target("e", Mailbox(meanwhile))])
    drained(first)
    put(store, 3)
    first.route()
    clock.sleep(7000)
    assert (first.due(), second.due()) == (set(), set())
    clock.sleep(300)
    assert first.due() == {"e"}


def test_a_failure_does_not_end_the_pause_that_another_process_was_asked_for(
    open_store: Callable[[], Store], clock: FrozenClock
) -> None:
    store, theirs = open_store(), Mailbox()
    theirs.outcome = Outcome("retry", "429", retry_after_s=7200, throttled=True)
    second = drain(open_store(), clock, [target("e", theirs)], owner="b")
    put(store, 1)

    def meanwhile() -> None:
        put(store, 2)
        drained(second)

    ours = Mailbox(meanwhile)
    ours.outcome = Outcome("retry", "503")
    first = drain(store, clock, [target("e", ours)])
    drained(first)
    clock.sleep(7000)
    assert (first.due(), second.due()) == (set(), set())


def test_a_message_that_was_routed_while_its_endpoint_answered_410_is_given_up(
    store: Store, clock: FrozenClock
) -> None:
    gone = Mailbox()
    gone.outcome = Outcome("gone", "410 Gone")
    work = drain(store, clock, [target("e", gone)])
    put(store, 1)
    drained(work)
    put(store, 2)
    with store.unit_of_work() as other:  # a process that read the state of the endpoint before
        [message] = other.outbox.lease("b", limit=10, seconds=30)
        other.deliveries.add([NewDelivery(message.id, "e")])
        other.outbox.done("b", [message.id])
    drained(work)
    with store.reading() as reading:
        lost = reading.deliveries.page().items
        assert reading.deliveries.page(state="waiting").items == ()
    assert [one.key for one in lost] == ["orion/2", "orion/1"]
    assert "410" in (lost[0].detail or "")
    assert gone.got == [["orion/1"]]


def test_a_digest_waits_no_longer_than_its_time_after_the_clock_was_set_back(store: Store, clock: FrozenClock) -> None:
    channel = Mailbox()
    work = drain(store, clock, [mailbox(channel)])
    clock.at += timedelta(days=3)  # a wrong clock
    put(store, 1)
    drained(work)
    clock.at -= timedelta(days=3)
    put(store, 2)
    drained(work)
    clock.sleep(DIGEST_S)
    drained(work)
    assert channel.got == [["orion/1"], ["orion/2"]]


def test_digests_that_are_over_are_not_kept(store: Store, clock: FrozenClock) -> None:
    removed = replace(mailbox(Mailbox()), name="removed")
    work = drain(store, clock, [mailbox(Mailbox()), removed])
    put(store, 1)
    drained(work)
    clock.sleep(DIGEST_S - 1)
    work.expire()
    assert digests_of(store) == {"mail": 1, "removed": 1}
    clock.sleep(2)
    drain(store, clock, [mailbox(Mailbox())]).expire()
    assert digests_of(store) == {"removed": 1}
    clock.sleep(SENDING.give_up_after_s)
    drain(store, clock, [mailbox(Mailbox())]).expire()
    assert digests_of(store) == {}
