"""The series of failures over time equals the totals of the same period."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from service.db.session import Store
from service.statistics.records import Scope
from service.statistics.repository.series import step_of
from tests.service.sample_rows import NOON, job, put, succeeded

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("days", "step"),
    [
        (0.1, timedelta(minutes=5)),
        (1, timedelta(hours=1)),
        (2, timedelta(hours=1)),
        (7, timedelta(hours=6)),
        (28, DAY),
        (92, DAY),
        (365, 7 * DAY),
    ],
)
def test_parts_have_a_length_that_suits_the_period(days: float, step: timedelta) -> None:
    assert step_of(NOON - days * DAY, NOON) == step


@pytest.mark.parametrize("recounted", [False, True])
@pytest.mark.parametrize("days", [1, 7, 28, 365])
def test_the_series_sums_to_the_totals(store: Store, days: int, *, recounted: bool) -> None:
    rows = []
    for number in range(60):
        ended = NOON - timedelta(hours=11 * number)
        changes = {"cluster": "vega" if number % 2 else "orion", "queue": "short" if number % 3 else "long"}
        rows.append(job(f"f{number}", status="failed", ended_at=ended, **changes))
        rows.append(succeeded(f"s{number}", ended_at=ended, **changes))
    put(store, rows)
    if recounted:
        with store.unit_of_work() as work:
            while work.rollups.recount(NOON + DAY):
                pass
    since, until = NOON - timedelta(days=days, minutes=7), NOON - timedelta(minutes=3)
    for scope in (Scope(), Scope(cluster="vega"), Scope(cluster="vega", queue="short")):
        with store.reading() as reading:
            stats = reading.statistics.stats(since, until, scope)
            parts = reading.statistics.series(since, until, scope)
        assert stats.failed > 0
        assert sum(part.failed for part in parts) == stats.failed
        assert sum(part.finished for part in parts) == stats.finished
        assert sum(sum(part.by_side.values()) for part in parts) == stats.failed
        assert sum(sum(part.gpu_hours_lost.values()) for part in parts) == pytest.approx(stats.gpu_hours_lost)
        assert parts[0].begin == since
        assert parts[-1].end == until
        assert all(one.end == two.begin for one, two in pairwise(parts))


def test_weeks_begin_on_monday(store: Store) -> None:
    with store.reading() as reading:
        parts = reading.statistics.series(NOON - 365 * DAY, NOON)
    assert {part.begin.weekday() for part in parts[1:]} == {0}
    assert len(parts) <= 54


def test_short_periods_have_parts_of_five_minutes(store: Store) -> None:
    minutes = (1, 4, 6, 31)
    put(store, [job(f"f{at}", status="failed", ended_at=NOON - timedelta(minutes=at)) for at in minutes])
    with store.reading() as reading:
        parts = reading.statistics.series(NOON - timedelta(hours=1), NOON)
    assert [part.failed for part in parts] == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2]
    assert [part.failed for part in parts] == [sum(part.by_side.values()) for part in parts]


def test_an_empty_period_has_no_parts(store: Store) -> None:
    with store.reading() as reading:
        assert reading.statistics.series(NOON, NOON) == ()
        assert len(reading.statistics.series(datetime(1990, 1, 1, tzinfo=UTC), NOON)) <= 400
