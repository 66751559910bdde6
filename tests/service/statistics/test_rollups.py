"""Roll-ups equal the counts of the rows for any order and time of writes (property tests)."""

from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from service.db.session import Store
from service.statistics.records import Scope, Stats
from service.statistics.repository import rollups, versions
from service.statistics.tables import day_counts, hour_counts
from tests.service.databases import connection_of
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

SINCE, UNTIL = NOON - timedelta(days=20, minutes=17), NOON + timedelta(minutes=5)


def fold(store: Store, now: datetime = NOON) -> int:
    with store.unit_of_work() as work:
        return work.rollups.recount(now, limit=1_000)


def read(store: Store, **scope: str) -> Stats:
    with store.reading() as reading:
        return reading.statistics.stats(SINCE, UNTIL, Scope(**scope))


def plain(store: Store, monkeypatch: pytest.MonkeyPatch, **scope: str) -> Stats:
    with monkeypatch.context() as patched:
        patched.setattr(rollups, "SHORT", timedelta(days=10_000))
        return read(store, **scope)


def fill(store: Store) -> None:
    for number in range(60):
        ended = NOON - timedelta(hours=7 * number, minutes=number)
        made = job if number % 3 else succeeded
        put(store, [made(str(number), ended_at=ended, queue=f"q{number % 2}", gpu_hours_lost=float(number % 3))])
    put(store, [job("open", ended_at=NOON - timedelta(days=5))], abstained=True)


def test_long_periods_have_the_same_counts_with_and_without_roll_ups(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    wanted = plain(store, monkeypatch)
    before = sum(1 for n in range(60) if n % 3 and NOON - timedelta(hours=7 * n, minutes=n) < SINCE)
    assert wanted.failed == 41 - before
    assert fold(store) > 40
    assert read(store) == wanted
    assert read(store, queue="q1") == plain(store, monkeypatch, queue="q1")
    put(store, [job("late", ended_at=NOON - timedelta(days=9))])
    assert read(store) == plain(store, monkeypatch)
    assert read(store).failed == wanted.failed + 1
    assert fold(store) == 1
    assert read(store) == plain(store, monkeypatch)


def test_a_revised_verdict_marks_its_hour_as_stale(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    [one] = put(store, [job("a", ended_at=NOON - timedelta(days=4))])
    fold(store)
    assert [share.key for share in read(store).by_side] == ["user"]
    with store.unit_of_work() as work:
        work.failures.revise(one.failure_id or 0, verdict(side="hardware", cause="HW.GPU.1"))
    for _ in range(2):
        assert [share.key for share in read(store).by_side] == ["hardware"]
        assert read(store) == plain(store, monkeypatch)
        fold(store)


def test_counts_of_rows_that_retention_removed_are_removed_too(store: Store) -> None:
    old = [NOON - timedelta(days=100, hours=hours) for hours in (0, 30, 60)]
    rows = [job(f"old {number}", ended_at=at, received_at=at) for number, at in enumerate(old)]
    put(store, [*rows, job("imported", ended_at=old[1], received_at=NOON)])
    put(store, [job("new"), succeeded("good")])
    later = NOON + timedelta(hours=3)
    fold(store, later)

    def found() -> tuple[Stats, int]:
        with store.reading() as reading:
            periods = reading.statistics.series(NOON - timedelta(days=200), later)
            return reading.statistics.stats(NOON - timedelta(days=200), later), sum(one.failed for one in periods)

    assert (found()[0].failed, found()[1]) == (5, 5)
    store.purge(rows_before=NOON - timedelta(days=90))
    for _ in range(2):  # before and after the hours are counted again
        stats, failed = found()
        assert (stats.finished, stats.failed, stats.gpu_hours_lost, failed) == (3, 2, 8.0, 2)
        assert sum(share.failures for share in stats.by_side) == 2
        fold(store, later)
    with store.reading() as reading:
        connection = connection_of(reading.statistics)
        assert set(connection.execute(select(hour_counts.c.hour)).scalars()) == {rollups.floor(old[1]), NOON}
        assert (
            len(set(connection.execute(select(day_counts.c.day).where(day_counts.c.scope != versions.SCOPE)).scalars()))
            == 2
        )


def test_an_hour_that_is_not_over_is_not_counted(store: Store) -> None:
    put(store, [job("a", ended_at=NOON - timedelta(minutes=20))])
    assert fold(store) == 0
    assert fold(store, NOON + timedelta(hours=1)) == 1
    assert fold(store, NOON + timedelta(hours=1)) == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(since=st.integers(0, 40_000), length=st.integers(0, 40_000))
def test_any_period_is_split_without_gap_or_overlap(store: Store, since: int, length: int) -> None:
    begin = NOON - timedelta(days=28) + timedelta(minutes=since)
    end = begin + timedelta(minutes=length)
    with store.unit_of_work() as work:
        rollups.mark_stale(connection_of(work.rollups), [begin + timedelta(minutes=length // 2)])
        parts = rollups.split(connection_of(work.rollups), begin, end)
    whole = (parts.last - parts.first) // timedelta(hours=1) - len(parts.noted) if parts.first < parts.last else 0
    covered = sum((until - since for since, until in parts.ranges), timedelta()) + whole * timedelta(hours=1)
    assert covered == end - begin
    assert all(one[1] < other[0] for one, other in zip(parts.ranges, parts.ranges[1:], strict=False))


def test_the_share_of_a_queue_and_of_a_user_among_all_failures(store: Store) -> None:
    ended = NOON - timedelta(days=2)
    put(store, [job(f"a{n}", ended_at=ended, queue="debug", user="ana") for n in range(3)])
    put(store, [job("b", ended_at=ended, queue="train", user="bo", status="preempted"), succeeded("c", ended_at=ended)])
    fold(store)
    with store.reading() as reading:
        shares = reading.statistics.failure_shares
        since = NOON - timedelta(days=28)
        assert shares("queue", ["debug", "train", "none"], since) == {"debug": 0.75, "train": 0.25}
        assert shares("user", ["bo", "nobody"], since) == {"bo": 0.25}
        assert shares("user", ["bo"], NOON) == {}


def test_failures_of_days_that_are_not_summed_yet_are_in_no_share(store: Store) -> None:
    ended = NOON - timedelta(days=2)
    put(store, [job("a", ended_at=ended, user="ana"), job("b", ended_at=ended, user="bo")])
    fold(store)
    put(store, [job(f"c{n}", ended_at=NOON, user="bo") for n in range(8)])
    with store.reading() as reading:
        shares = reading.statistics.failure_shares("user", ["ana", "bo"], NOON - timedelta(days=28))
    assert shares == {"ana": 0.5, "bo": 0.5}


def test_a_day_between_others_of_which_an_hour_is_not_summed_is_in_no_share(store: Store) -> None:
    for days in (3, 1):
        put(store, [job(f"a{days}", ended_at=NOON - timedelta(days=days), user="ana", queue="debug")])
    late = NOON - timedelta(days=2)
    put(store, [job(f"b{n}", ended_at=late, user="bo", queue="train") for n in range(2)])
    fold(store)
    with store.reading() as reading:
        assert reading.statistics.failure_shares("user", ["ana", "bo"], NOON - timedelta(days=28)) == {
            "ana": 0.5,
            "bo": 0.5,
        }
    put(store, [job(f"c{n}", ended_at=late + timedelta(hours=1), user="bo", queue="train") for n in range(2)])
    with store.reading() as reading:
        for kind, names in (("user", ["ana", "bo"]), ("queue", ["debug", "train"])):
            assert reading.statistics.failure_shares(kind, names, NOON - timedelta(days=28)) == {names[0]: 1.0}
