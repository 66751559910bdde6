from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from service.db.session import Store
from service.errors import InvalidInput, NotFound
from service.failures.records import FailureFilter
from service.groups.records import GroupFilter, GroupRow, Mute
from service.groups.repository import counts
from tests.service.databases import connection_of
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put, verdict


def fold(store: Store, **limit: int) -> set[int] | None:
    with store.unit_of_work() as work:
        return work.groups.fold(**limit)


def rows(store: Store, **filters: Any) -> list[GroupRow]:
    with store.reading() as reading:
        return list(reading.groups.page(GroupFilter(**filters)).items)


def test_failures_of_one_fingerprint_are_counted_as_one_group(store: Store) -> None:
    put(store, [job("a1", user="ana"), job("a2", user="bo", ended_at=NOON - timedelta(hours=2))], fingerprint="v1:a")
    put(store, [job("b1", gpu_hours_lost=9.5)], fingerprint="v1:b", abstained=True)
    assert rows(store) == []
    changed = fold(store)
    assert changed is not None
    assert len(changed) == 2
    assert fold(store) is None, "nothing is left"
    by_print = {row.fingerprint: row for row in rows(store)}
    one = by_print["v1:a"]
    assert (one.failures, one.users, one.gpu_hours_lost) == (2, 2, 8.0)
    assert (one.first_at, one.last_at) == (NOON - timedelta(hours=2), NOON)
    assert one.title == "FileNotFoundError: /data/train/index.json"
    assert by_print["v1:b"].abstained
    with store.reading() as reading:
        detail = reading.groups.get(one.id)
    assert {(facet.kind, facet.name, facet.failures) for facet in detail.facets} == {
        ("cluster", "orion", 2),
        ("queue", "gpu-long", 2),
        ("team", "vision", 2),
        ("user", "ana", 1),
        ("user", "bo", 1),
        ("node", "gpu1", 2),
    }
    assert [(hour.hour, hour.failures) for hour in detail.hours] == [(NOON - timedelta(hours=2), 1), (NOON, 1)]


def test_counting_in_small_transactions_gives_the_same_result(store: Store) -> None:
    put(store, [job(f"e{n}", user=f"u{n % 3}", ended_at=NOON - timedelta(minutes=n)) for n in range(25)])
    while fold(store, limit=4) is not None:
        pass
    [row] = rows(store)
    assert (row.failures, row.users, row.gpu_hours_lost) == (25, 3, 100.0)


def test_two_processes_never_count_the_same_twice(open_store: Callable[[], Store], dialect: str) -> None:
    if dialect != "postgresql":
        pytest.skip("SQLite has one writer")
    one, other = open_store(), open_store()
    put(one, [job(f"e{n}") for n in range(10)])
    with one.unit_of_work() as first:
        assert first.groups.fold(limit=5)
        assert fold(other) is None, "somebody is at it"
    assert fold(other)
    [row] = rows(one)
    assert row.failures == 10


def test_a_verdict_that_moves_to_another_kind_is_counted_there(store: Store) -> None:
    [outcome, _] = put(store, [job("e1"), job("e2")], fingerprint="v1:a")
    fold(store)
    with store.unit_of_work() as work:
        work.failures.revise(outcome.failure_id or 0, verdict(fingerprint="v1:b"))
    fold(store)
    assert {row.fingerprint: row.failures for row in rows(store)} == {"v1:a": 1, "v1:b": 1}


def test_a_group_has_the_revised_cause_of_its_newest_failure(store: Store) -> None:
    first, newest = put(store, [job("e1"), job("e2")], fingerprint="v1:a", side="hardware", cause="HW.NODE.1")
    fold(store)
    with store.unit_of_work() as work:
        work.failures.revise(newest.failure_id or 0, verdict(fingerprint="v1:a", side="system", cause="SYS.5"))
    fold(store)
    [row] = rows(store)
    assert (row.side, row.cause, row.failures, row.users) == ("system", "SYS.5", 2, 1)
    with store.unit_of_work() as work:
        work.failures.revise(first.failure_id or 0, verdict(fingerprint="v1:a", side="user", cause="USER.1"))
    fold(store)
    [row] = rows(store)
    assert (row.side, row.failures, row.gpu_hours_lost) == ("system", 2, 8.0), "an older one changes nothing"


def test_failures_removed_by_retention_are_not_counted(store: Store) -> None:
    put(store, [job("e1")])
    store.purge(rows_before=NOON + timedelta(days=1))
    assert fold(store) in (None, set())


def test_pages_go_on_where_the_last_one_ended(store: Store) -> None:
    for number in range(7):
        at = NOON - timedelta(minutes=number // 2)
        put(store, [job(f"e{number}", ended_at=at, gpu_hours_lost=float(number // 3))], fingerprint=f"v1:{number}")
    fold(store)
    for sort in ("-last_at", "-gpu_hours_lost"):
        seen: list[int] = []
        cursor = None
        with store.reading() as reading:
            while not seen or cursor is not None:
                page = reading.groups.page(limit=3, cursor=cursor, sort=sort)
                cursor = page.next_cursor
                seen += [row.id for row in page.items]
        assert len(seen) == len(set(seen)) == 7
    with store.reading() as reading, pytest.raises(InvalidInput):
        reading.groups.page(sort="colour")  # type: ignore[arg-type]  # what a URL may say
    with store.reading() as reading, pytest.raises(InvalidInput):
        reading.groups.page(GroupFilter(state="happy"))


@pytest.mark.parametrize("kind", ["cluster", "queue", "team", "user", "node"])
def test_groups_are_found_by_place_and_user(store: Store, kind: str) -> None:
    put(store, [job("e1")], fingerprint="v1:a")
    odd: dict[str, Any] = {} if kind == "node" else {kind: "odd"}
    suspect = {"rank": 0, "node": "odd" if kind == "node" else None, "gpu": None}
    put(store, [job("e2", **odd)], fingerprint="v1:b", suspect=suspect)
    fold(store)
    assert [row.fingerprint for row in rows(store, **{kind: "odd"})] == ["v1:b"]


def test_a_merged_group_s_failures_come_as_one_list(store: Store) -> None:
    for number in range(3):
        jobs = [job(f"{number}-{n}", ended_at=NOON - timedelta(minutes=3 * n + number)) for n in range(4)]
        put(store, jobs, fingerprint=f"v1:{number}")
    fold(store)
    one = next(row for row in rows(store) if row.fingerprint == "v1:0")
    with store.unit_of_work() as work:
        work.groups.move(["v1:1", "v1:2"], one.id)
    assert next(row for row in rows(store) if row.id == one.id).failures == 12
    for sort in ("-ended_at", "ended_at", "-gpu_hours_lost"):
        seen: list[str] = []
        cursor = None
        with store.reading() as reading:
            while not seen or cursor is not None:
                page = reading.failures.page(FailureFilter(group=str(one.id)), limit=5, cursor=cursor, sort=sort)
                cursor = page.next_cursor
                seen += [row.job_id for row in page.items]
        assert len(seen) == 12
        if sort == "-ended_at":
            assert seen == [f"{number}-{n}" for n in range(4) for number in range(3)]
        assert len(set(seen)) == 12
    with store.reading() as reading:
        assert reading.failures.facets(FailureFilter(group=str(one.id))).of == 12


def test_a_personal_mute_expires(store: Store, clock: FrozenClock) -> None:
    put(store, [job("e1")])
    fold(store)
    [row] = rows(store)
    with store.unit_of_work() as work:
        work.groups.mute_for("ana", row.id, Mute(until=clock.now() + timedelta(hours=1), failures=3))
    assert rows(store, hidden_from="ana") == []
    assert rows(store, hidden_from="bo") == [row]
    clock.at += timedelta(hours=2)
    assert rows(store, hidden_from="ana") == [row]


def test_an_unknown_group_is_not_found(store: Store) -> None:
    with store.reading() as reading:
        for number in (1, 0, -1, 2**70):
            with pytest.raises(NotFound):
                reading.groups.get(number)


def test_a_split_moves_existing_failures_in_small_transactions(store: Store) -> None:
    put(store, [job(f"e{n}", user=("ana", "bo")[n % 2]) for n in range(9)], fingerprint="v1:a")
    fold(store)
    with store.unit_of_work() as work:
        split = work.groups.split("v1:a", "user", "bo", "ana")
        moved = [counts.regroup(connection_of(work.groups), split, limit=3) for _ in range(3)]
    assert moved == [3, 1, 0]
    fold(store)
    assert {row.fingerprint: row.failures for row in rows(store)} == {"v1:a": 5, f"v1:a~{split.id}": 4}
