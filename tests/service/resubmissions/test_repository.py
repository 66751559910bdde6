"""Stored requests: one open request per lineage, pages, leases, ends."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from service.db.session import Store
from service.errors import InvalidInput, NotFound
from service.resubmissions.records import LineageMember, NewRequest, Request
from service.resubmissions.repository.lineages import key_of
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON


def new(number: int, **changes: Any) -> NewRequest:
    plain = NewRequest(
        failure_id=number,
        attempt_id=number,
        verdict_version=1,
        cluster="orion",
        job_id=str(number),
        attempt=None,
        user="ana",
        team=None,
        queue="gpu",
        gpus=8,
        lineage=key_of("orion", str(number)),
        side="hardware",
        cause="HW.GPU.1",
        fingerprint="1:xid",
        resource="",
        state="waiting",
        origin="policy",
        kind="requeue",
        plan="elsewhere",
        policy="p1",
        not_before=NOON,
        expires_at=NOON + timedelta(days=1),
        exclude_nodes=("gpu018",),
        changes={"memory_bytes": 2**40},
        reasons=("one bad node: it is left out",),
        keys=("orion|node|gpu018",),
    )
    return replace(plain, **changes)


def add(store: Store, *given: NewRequest) -> list[Request]:
    with store.unit_of_work() as work:
        return work.requests.add(given)


def test_a_request_is_read_back_as_stored(store: Store) -> None:
    [made] = add(store, new(1))
    with store.reading() as reading:
        assert reading.requests.get(made.request_id) == made
        assert reading.requests.of_failures([1]) == [made]
        assert reading.requests.count_by_state() == {"waiting": 1}
        with pytest.raises(NotFound):
            reading.requests.get("rnone")
    assert made.changes == {"memory_bytes": 2**40}
    assert made.created_at == NOON


def test_a_lineage_has_one_open_request_and_any_number_of_shadow_requests(store: Store) -> None:
    assert len(add(store, new(1), new(1, failure_id=2))) == 1
    assert add(store, new(1, failure_id=3)) == []
    assert len(add(store, new(1, state="shadow"), new(1, failure_id=2, state="shadow"))) == 2
    [made] = [one for one in _all(store) if one.state == "waiting"]
    with store.unit_of_work() as work:
        assert [one.state for one in work.requests.end([made.request_id], "withdrawn", detail="x")] == ["withdrawn"]
        assert work.requests.end([made.request_id], "expired", detail="y") == []
    assert len(add(store, new(1, failure_id=4))) == 1


def test_names_are_cut_and_cleaned_as_everywhere(store: Store) -> None:
    [made] = add(store, new(1, user="a\0b" * 100, job_id="j" * 300, reasons=("\ud800",)))
    with store.reading() as reading:
        found = reading.requests.get(made.request_id)
    assert found.user is not None
    assert len(found.user) == len(found.job_id) == 200
    assert "\0" not in found.user


def test_pages_go_back_in_time_once(store: Store) -> None:
    add(store, *(new(number) for number in range(7)))
    seen: list[str] = []
    cursor = None
    with store.reading() as reading:
        while True:
            page = reading.requests.page(limit=3, cursor=cursor)
            seen += [one.request_id for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) == 7
        assert reading.requests.page(cluster="vega").items == ()
        with pytest.raises(InvalidInput):
            reading.requests.page(limit=0)
        with pytest.raises(InvalidInput):
            reading.requests.page(cursor="x")


def test_a_lease_belongs_to_one_hook_until_it_expires(store: Store, clock: FrozenClock) -> None:
    add(store, new(1), new(2, not_before=NOON + timedelta(hours=1)), new(3, cluster="vega"))
    assert _lease(store, "orion") == ["1"]
    assert _lease(store, "orion") == []
    clock.at += timedelta(seconds=61)
    assert _lease(store, "orion") == ["1"]
    clock.at += timedelta(days=1)
    assert _lease(store, "orion") == []
    with store.unit_of_work() as work:
        assert {one.job_id for one in work.requests.expire()} == {"1", "2", "3"}


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)  # SQLite has one writer at a time
def test_concurrent_leases_never_get_the_same_request(store: Store, open_store: Callable[[], Store]) -> None:
    add(store, *(new(number) for number in range(4)))
    other = open_store()
    with store.unit_of_work() as one, other.unit_of_work() as two:
        first = one.leases.due("orion", limit=2)
        second = two.leases.due("orion", limit=4)
        assert len(first) == len(second) == 2
        assert not {row.id for row in first} & {row.id for row in second}


def test_a_lineage_is_the_same_in_any_order_of_arrival(store: Store) -> None:
    root = key_of("orion", "1")
    with store.unit_of_work() as work:
        # The grandchild is told before the child.
        work.lineages.join({("orion", "3"): LineageMember(key_of("orion", "2"), "2")})
        work.lineages.join({("orion", "2"): LineageMember(root, "1")})
        work.lineages.join({("orion", "2"): LineageMember(root, "1"), ("orion", "1"): LineageMember(root, "1")})
    with store.reading() as reading:
        found = reading.lineages.find([("orion", "1"), ("orion", "2"), ("orion", "3")])
        assert {job_id: joined.lineage for (_, job_id), joined in found.items()} == {"2": root, "3": root}
        assert sorted(reading.lineages.members([root])[root]) == [("orion", "2"), ("orion", "3")]


def test_the_kill_switch_keeps_its_position(store: Store, open_store: Callable[[], Store]) -> None:
    with store.unit_of_work() as work:
        assert not work.kill_switch.get_locked().stopped
        work.kill_switch.turn(stopped=True, actor="ana", reason="r" * 900)
    with open_store().reading() as reading:
        switch = reading.kill_switch.get()
    assert (switch.stopped, switch.by, len(switch.reason or "")) == (True, "ana", 500)
    with store.unit_of_work() as work:
        assert not work.kill_switch.turn(stopped=False, actor="bea").stopped


def _lease(store: Store, cluster: str) -> list[str]:
    with store.unit_of_work() as work:
        work.leases.lock_cluster(cluster)
        rows = work.leases.due(cluster, limit=10)
        return [lease.job_id for lease in work.leases.grant(rows, "hook", 60)]


def _all(store: Store) -> list[Request]:
    with store.reading() as reading:
        return list(reading.requests.page(limit=500).items)


def test_many_requests_are_released_with_few_statements_each_at_its_own_time(store: Store) -> None:
    made = add(store, *(new(number, state="held") for number in range(1_200)))
    times = {one.request_id: NOON + timedelta(minutes=place) for place, one in enumerate(reversed(made))}
    other, until = made[7].request_id, NOON + timedelta(days=30)
    asked: list[str] = []
    with store.unit_of_work() as work:
        work.requests.end([other], "withdrawn", detail="x")
        event.listen(work.requests._connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        released = work.requests.release(times, expires_at=until)
    assert len(asked) <= 6
    assert [one.request_id for one in released] == [one for one in times if one != other]
    with store.reading() as reading:
        for one in (released[0], released[600], released[-1]):
            assert reading.requests.get(one.request_id) == one
            assert (one.state, one.held_by) == ("waiting", None)
            assert (one.not_before, one.expires_at) == (times[one.request_id], until)
        left = reading.requests.get(other)
        assert (left.state, left.not_before) == ("withdrawn", NOON)


def test_times_out_of_range_are_clamped(store: Store) -> None:
    [made] = add(store, new(1, started_at=datetime.max.replace(tzinfo=NOON.tzinfo)))
    with store.reading() as reading:
        assert reading.requests.get(made.request_id).state == "waiting"
