"""The outbox to its endpoints, by real receivers, on both databases; time moves only by the test."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import orjson
import pytest
from standardwebhooks.webhooks import Webhook

from service.db.session import Store
from service.deliveries.channels.channel import SENT, Outcome
from service.deliveries.config import Route
from service.deliveries.drain import Drain
from service.deliveries.records import DueDelivery, StoredDelivery
from service.telemetry import Telemetry
from tests.service.deliveries.receivers import Receiver, receiver
from tests.service.deliveries.sample_messages import SECRET, SENDING, drain, put, target, webhook
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import job
from tests.service.sample_rows import put as put_failures


@pytest.fixture
def good() -> Iterator[Receiver]:
    with receiver() as here:
        yield here


class Says:
    """A channel that answers what it is told to."""

    bulk = False

    def __init__(self, outcome: Outcome = SENT) -> None:
        self.outcome = outcome
        self.got: list[int] = []

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        self.got.extend(one.message_id for one in messages)
        return self.outcome

    def close(self) -> None:
        pass


class Picky(Says):
    """Takes batches, and refuses those with a certain message in them."""

    bulk = True

    def send(self, messages: Sequence[DueDelivery]) -> Outcome:
        if any(one.key == "orion/2" for one in messages):
            return Outcome("refused", "413: too large")
        return super().send(messages)


def given_up(store: Store) -> tuple[StoredDelivery, ...]:
    with store.reading() as reading:
        return reading.deliveries.page().items


def drained(one: Drain) -> int:
    one.route()
    return sum(one.deliver(name) for name in sorted(one.due()))


def test_each_message_is_sent_once_and_signed(store: Store, clock: FrozenClock, good: Receiver) -> None:
    put(store, 1, 2)
    work = drain(store, clock, [webhook("e", good.url, clock)])
    assert drained(work) == 2
    assert drained(work) == 0
    assert len(set(good.ids)) == 2
    got = good.got[0]
    assert (
        Webhook(SECRET).sign(got.headers["webhook-id"], clock.at, got.body.decode()) in got.headers["webhook-signature"]
    )
    result = orjson.loads(got.body)
    assert (result["type"], result["data"]["verdict"]["job_id"]) == ("failure.diagnosed", "1")
    assert got.headers["webhook-timestamp"] == str(int(clock.at.timestamp()))


def test_a_failed_one_comes_again_by_the_schedule_with_its_id_and_is_given_up_in_the_end(
    store: Store, clock: FrozenClock, good: Receiver
) -> None:
    put(store, 1)
    good.status = 500
    work = drain(store, clock, [webhook("e", good.url, clock)], circuit_failures=100)
    assert drained(work) == 1
    for pause in SENDING.schedule_s[1:]:
        clock.sleep(pause - 0.5)
        assert drained(work) == 0
        clock.sleep(0.5)
        assert drained(work) == 1
    clock.sleep(1_000_000)
    assert drained(work) == 0
    assert len(good.got) == len(SENDING.schedule_s)
    assert len(set(good.ids)) == 1
    [lost] = given_up(store)
    assert (lost.endpoint, lost.key, lost.attempts, lost.detail) == ("e", "orion/1", 10, "500")
    good.status = 200
    with store.unit_of_work() as unit:
        unit.deliveries.send_again(lost.message_id, "e")
    assert drained(work) == 1
    assert good.ids[-1] == good.ids[0]
    assert given_up(store) == ()


def test_retry_after_is_honoured_for_all_of_the_endpoint(store: Store, clock: FrozenClock, good: Receiver) -> None:
    put(store, 1, 2, 3)
    good.status, good.headers = 429, {"Retry-After": "900"}
    work = drain(store, clock, [webhook("e", good.url, clock)])
    assert drained(work) == 1
    clock.sleep(899)
    assert drained(work) == 0
    good.status = 200
    clock.sleep(1)
    assert drained(work) == 3


def test_retry_after_of_any_failure_lengthens_the_message_s_pause(
    store: Store, clock: FrozenClock, good: Receiver
) -> None:
    put(store, 1)
    good.status, good.headers = 500, {"Retry-After": "60"}
    work = drain(store, clock, [webhook("e", good.url, clock)])
    assert drained(work) == 1
    clock.sleep(59)
    assert drained(work) == 0
    clock.sleep(1)
    assert drained(work) == 1


def test_410_ends_the_endpoint_until_it_is_sent_again(store: Store, clock: FrozenClock, good: Receiver) -> None:
    put(store, 1, 2)
    good.status = 410
    work = drain(store, clock, [webhook("e", good.url, clock)])
    drained(work)
    put(store, 3)
    clock.sleep(100_000)
    assert drained(work) == 0
    assert len(good.got) == 1
    lost = given_up(store)
    assert [one.key for one in lost] == ["orion/3", "orion/2", "orion/1"]
    assert all("accepts no more messages" in (one.detail or "") for one in lost)
    good.status = 200
    with store.unit_of_work() as unit:
        unit.endpoints.enable("e")
        unit.deliveries.send_again(lost[0].message_id, "e")
    assert drained(work) == 1


def test_the_answer_410_is_counted_from_zero(store: Store, clock: FrozenClock, good: Receiver) -> None:
    """An endpoint answers it once: `increase()` of the alert sees nothing of a counter that begins with 1."""
    telemetry = Telemetry()

    def gone() -> float | None:
        labels = {"endpoint": "e", "outcome": "gone"}
        return telemetry.registry.get_sample_value("faultline_deliveries_total", labels)

    put(store, 1)
    good.status = 410
    work = drain(store, clock, [webhook("e", good.url, clock)], telemetry=telemetry)
    assert gone() == 0
    drained(work)
    assert gone() == 1


def test_an_endpoint_at_a_new_address_starts_afresh(store: Store, clock: FrozenClock, good: Receiver) -> None:
    put(store, 1)
    with receiver() as gone:
        gone.status = 410
        drained(drain(store, clock, [webhook("e", gone.url, clock)]))
    put(store, 2)
    work = drain(store, clock, [webhook("e", good.url, clock)])
    work.route()
    assert work.deliver("e") == 1
    assert len(good.got) == 1


def test_the_circuit_opens_and_one_probe_closes_it(store: Store, clock: FrozenClock) -> None:
    put(store, *range(20))
    channel = Says(Outcome("retry", "500"))
    work = drain(store, clock, [target("e", channel)])
    assert drained(work) == 5
    clock.sleep(29)
    assert drained(work) == 0
    clock.sleep(1)
    assert drained(work) == 1
    clock.sleep(59)
    assert drained(work) == 0
    channel.outcome = SENT
    clock.sleep(1)
    assert drained(work) == 1
    assert drained(work) == 19  # those that had failed are due again too
    assert drained(work) == 0


def test_while_one_process_probes_no_other_does(open_store: Callable[[], Store], clock: FrozenClock) -> None:
    put(open_store(), *range(9))
    other_tried: list[int] = []

    class Watched(Says):
        def send(self, messages: Sequence[DueDelivery]) -> Outcome:
            if len(self.got) >= 5:
                other_tried.append(second.deliver("e"))
            return super().send(messages)

    broken = Outcome("retry", "500")
    first = drain(open_store(), clock, [target("e", Watched(broken))])
    second = drain(open_store(), clock, [target("e", Says(broken))], owner="b")
    assert drained(first) == 5
    clock.sleep(30)
    assert drained(first) == 1
    assert other_tried == [0]


def test_bad_endpoints_delay_no_other(store: Store, clock: FrozenClock) -> None:
    put(store, *range(6))
    over = threading.Event()
    with ExitStack() as stack:
        bad = {name: stack.enter_context(receiver()) for name in ("slow", "broken", "moved", "huge", "gone", "good")}
        bad["slow"].before_answer = lambda: over.wait(60)
        bad["broken"].status, bad["gone"].status = 500, 410
        bad["moved"].status, bad["moved"].headers = 301, {"Location": bad["good"].url}
        bad["huge"].answer = b"x" * 5_000_000
        waits = {"slow": 0.1}
        targets = [webhook(name, here.url, clock, timeout_s=waits.get(name, 60.0)) for name, here in bad.items()]
        targets.append(webhook("closed", "http://127.0.0.1:1/", clock))
        targets.append(webhook("inside", "https://10.0.0.1/", clock))
        work = drain(store, clock, targets)
        drained(work)
        assert len(bad["good"].got) == 6  # none of them by a redirect
        assert len(bad["huge"].got) == 6
        assert len(bad["gone"].got) == 1
        assert len(bad["broken"].got) == len(bad["moved"].got) == 5
        over.set()
    with store.reading() as reading:
        states = reading.endpoints.all()
    assert states["good"].failures == states["huge"].failures == 0
    assert {name for name, state in states.items() if state.failures == 5} == {
        *("slow", "broken", "moved", "closed", "inside")
    }
    assert "redirects are not followed" in (states["moved"].detail or "")


def test_messages_of_a_killed_process_are_sent_by_another_when_the_lease_ends(
    open_store: Callable[[], Store], clock: FrozenClock
) -> None:
    store = open_store()
    put(store, 1, 2)

    class Dies(Says):
        def send(self, messages: Sequence[DueDelivery]) -> Outcome:
            super().send(messages)
            raise KeyboardInterrupt

    first = drain(store, clock, [target("e", Dies())])
    first.route()
    with pytest.raises(KeyboardInterrupt):
        first.deliver("e")
    channel = Says()
    second = drain(open_store(), clock, [target("e", channel)], owner="b")
    assert drained(second) == 0
    clock.sleep(SENDING.lease_s)
    assert drained(second) == 2


def test_processes_share_the_work(open_store: Callable[[], Store], clock: FrozenClock) -> None:
    put(open_store(), *range(60))
    channels = [Says() for _ in range(3)]
    works = [
        drain(open_store(), clock, [target("e", channel)], owner=str(number), batch=4)
        for number, channel in enumerate(channels)
    ]

    def work(one: Drain) -> None:
        one.route()
        while one.deliver("e"):
            pass

    threads = [threading.Thread(target=work, args=(one,)) for one in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while any(one.deliver("e") for one in works):
        pass
    got = [number for channel in channels for number in channel.got]
    assert len(got) == len(set(got)) == 60


def test_only_subscribers_receive_it(store: Store, clock: FrozenClock) -> None:
    [failure, _] = put_failures(store, [job("1", gpu_hours_lost=500.0), job("2", team="speech")])
    put(store, failure.failure_id or 0, 999)
    everything, vision, hardware = Says(), Says(), Says()
    work = drain(
        store,
        clock,
        [
            target("everything", everything),
            target("vision", vision, Route(team=("vision",), min_gpu_hours=100)),
            target("hardware", hardware, Route(side=("hardware",)), Route(cause=("HW.*",))),
        ],
    )
    assert drained(work) == 3
    assert (len(everything.got), len(vision.got), len(hardware.got)) == (2, 1, 0)


def test_a_refused_one_takes_none_of_its_batch_with_it(store: Store, clock: FrozenClock) -> None:
    put(store, 1, 2, 3)
    channel = Picky()
    work = drain(store, clock, [target("e", channel)])
    assert drained(work) == 3
    assert len(channel.got) == 2
    assert [(one.key, one.detail) for one in given_up(store)] == [("orion/2", "413: too large")]
    clock.sleep(1_000_000)
    assert drained(work) == 0


def test_an_undeliverable_message_is_abandoned_after_a_while(store: Store, clock: FrozenClock) -> None:
    put(store, 1)
    work = drain(store, clock, [target("e", Says(Outcome("retry", "500")))])
    drained(work)
    clock.sleep(SENDING.give_up_after_s - 1)
    assert work.expire() == 0
    clock.sleep(2)
    assert work.expire() == 1
    [lost] = given_up(store)
    assert lost.detail == "not delivered within 100 hours"
    with store.unit_of_work() as unit:
        unit.deliveries.send_again(lost.message_id, "e")
    assert work.expire() == 0  # it is kept for the attempt that a person asked for
    assert drained(work) == 1


def test_stopping_puts_back_what_was_not_tried(store: Store, clock: FrozenClock) -> None:
    put(store, 1, 2)
    stop = threading.Event()
    stop.set()
    work = drain(store, clock, [target("e", Says())])
    work.route()
    assert work.deliver("e", stop) == 0
    assert drained(work) == 2
