from datetime import UTC, datetime, timedelta

import pytest

from service.db.session import Store
from service.failures.records import NewFailure
from service.jobs.records import NewJob
from service.statistics.records import HourCount, Scope, Share
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

DAY = timedelta(days=1)


def one(status: str, n: int, *, ended: datetime = NOON, **changes: object) -> NewJob:
    return job(f"{status}{n}", status=status, ended_at=ended, **changes)


def test_the_rate_excludes_preempted_and_cancelled_jobs(store: Store) -> None:
    rows = [succeeded(f"good{n}") for n in range(6)]
    for n, status in enumerate(["failed", "timeout", "out_of_memory", "node_fail", "evicted", "hung"]):
        rows.append(one(status, n))
    rows += [one("preempted", 0), one("cancelled", 0), job("cancelled1", status="cancelled", diagnosed=False)]
    put(store, rows)
    with store.reading() as reading:
        stats = reading.statistics.stats(NOON, NOON + timedelta(microseconds=1))
    assert (stats.finished, stats.succeeded, stats.failed, stats.rate) == (12, 6, 6, 0.5)
    assert (stats.preempted, stats.cancelled) == (1, 2)
    assert stats.gpu_hours_lost == 24.0
    assert stats.by_side == (Share("user", 6, 24.0),)
    assert stats.by_status["hung"] == 1


def test_the_range_is_half_open_and_may_be_empty(store: Store) -> None:
    put(store, [one("failed", 1)])
    with store.reading() as reading:
        assert reading.statistics.stats(NOON - DAY, NOON).failed == 0
        empty = reading.statistics.stats(NOON - DAY, NOON)
        assert (empty.rate, empty.by_side, empty.gpu_hours_lost) == (None, (), 0.0)
        assert reading.statistics.stats(NOON + DAY, NOON - DAY).hours == ()


@pytest.mark.parametrize(
    ("scope", "failed"),
    [(Scope(), 3), (Scope(cluster="vega"), 1), (Scope(queue="short"), 1), (Scope(team="nlp", cluster="orion"), 1)],
)
def test_a_scope_filters_every_figure(store: Store, scope: Scope, failed: int) -> None:
    put(store, [one("failed", 1, cluster="vega"), one("failed", 2, queue="short"), one("failed", 3, team="nlp")])
    with store.reading() as reading:
        stats = reading.statistics.stats(NOON - DAY, NOON + DAY, scope)
    assert stats.failed == failed
    assert sum(share.failures for share in stats.by_side) == failed
    assert sum(hour.failed for hour in stats.hours) == failed


def test_sides_and_causes_are_sorted_by_number_and_include_unknown(store: Store) -> None:
    made = [
        ("user", "USER.1", False, 1.0),
        ("user", "USER.2", False, 1.0),
        ("user", "USER.1", False, 0.5),
        ("hardware", "HW.GPU.1", False, 100.0),
        ("system", "SYS.1", True, 2.0),
    ]
    with store.unit_of_work() as work:
        jobs = [job(f"e{n}", gpu_hours_lost=row[3]) for n, row in enumerate(made)]
        outcomes = work.jobs.add([*jobs, job("no verdict", diagnosed=False, gpu_hours_lost=3.0)])
        work.failures.add(
            [
                NewFailure(outcome, given, verdict(side=side, cause=cause, abstained=abstained))
                for outcome, given, (side, cause, abstained, _) in zip(outcomes, jobs, made, strict=False)
            ]
        )
    with store.reading() as reading:
        stats = reading.statistics.stats(NOON - DAY, NOON + DAY)
        health = reading.statistics.health(NOON - DAY)
    assert stats.by_side == (Share("user", 3, 2.5), Share("unknown", 2, 5.0), Share("hardware", 1, 100.0))
    assert stats.by_cause[0] == Share("USER.1", 2, 1.5)
    assert stats.gpu_hours_lost == sum(share.gpu_hours_lost for share in stats.by_cause) == 107.5
    assert (health.diagnosed, health.abstained, health.abstained_share) == (5, 1, 0.2)


def test_hours_are_whole_and_cover_a_day_at_most(store: Store) -> None:
    put(
        store,
        [
            one("failed", 1, ended=NOON - timedelta(minutes=1)),
            one("failed", 2, ended=NOON),
            succeeded("good", ended_at=NOON + timedelta(minutes=59)),
            one("preempted", 3, ended=NOON),
            one("failed", 4, ended=NOON - timedelta(days=3)),
        ],
    )
    with store.reading() as reading:
        stats = reading.statistics.stats(NOON - timedelta(days=7), NOON + timedelta(hours=1))
        short = reading.statistics.stats(NOON - timedelta(minutes=30), NOON + timedelta(minutes=30))
    assert len(stats.hours) == 24
    assert stats.hours[-1] == HourCount(NOON, 2, 1, {"user": 1})
    assert stats.hours[-2] == HourCount(NOON - timedelta(hours=1), 1, 1, {"user": 1})
    assert stats.hours[0] == HourCount(NOON - timedelta(hours=23), 0, 0, {})
    assert [hour.hour for hour in short.hours] == [NOON - timedelta(hours=1), NOON]


def test_the_limits_of_datetime(store: Store) -> None:
    put(store, [one("failed", 1)])
    with store.reading() as reading:
        stats = reading.statistics.stats(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    assert (stats.failed, len(stats.hours)) == (1, 24)


def test_health_of_an_empty_store(store: Store) -> None:
    with store.reading() as reading:
        health = reading.statistics.health(NOON)
    assert (health.diagnosed, health.abstained_share, health.conflicts, health.dead_letters) == (0, None, 0, 0)
