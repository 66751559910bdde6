"""Figures from the sums of hours equal those from the counts of hours and those from the rows."""

import random
from datetime import timedelta
from typing import Any

import pytest
from alembic import command
from sqlalchemy import select, text

from service.db import schema
from service.db.session import Store
from service.jobs.records import NewJob
from service.statistics.count_cache import CountCache
from service.statistics.records import PeriodCount, Stats
from service.statistics.repository import rollups, sums
from service.statistics.tables import day_counts, hour_counts
from tests.service.databases import connection_of, engine_of
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIDES = (("user", "USER.1"), ("hardware", "HW.GPU.1"), ("system", "SYS.1"))
KINDS = ("jobs_sum", "sides_sum", "causes_sum")
Figures = dict[int, tuple[Stats, tuple[PeriodCount, ...]]]


def stream(number: int, rng: random.Random) -> list[NewJob]:
    """One job somewhere in the nine days before noon: mostly failed, some with retries, each attempt hours later."""
    begin = NOON - timedelta(minutes=rng.randrange(9 * 24 * 60))
    fields = {"cluster": rng.choice(("orion", "vega")), "queue": f"q{number % 3}", "team": f"t{number % 4}"}
    attempts = [
        job(
            f"{number}-{attempt}",
            job_id=f"j{number}",
            attempt=attempt,
            status=rng.choice(("failed", "failed", "timeout", "preempted", "cancelled")),
            ended_at=begin + attempt * timedelta(hours=rng.randrange(1, 9)),
            gpu_hours_lost=float(rng.randrange(100)),
            **fields,
        )
        for attempt in range(rng.choice((1, 1, 2, 3)))
    ]
    if number % 2:
        last = attempts[-1].ended_at + HOUR
        attempts.append(succeeded(f"{number}-s", job_id=f"j{number}", attempt=len(attempts), ended_at=last, **fields))
    return [one for one in attempts if one.ended_at < NOON]


def store_some(store: Store, numbers: range, rng: random.Random) -> list[int]:
    """Store the attempts of these jobs, out of order; the ids of their failures."""
    made = [one for number in numbers for one in stream(number, rng)]
    rng.shuffle(made)
    ids: list[int] = []
    for one in made:
        side, cause = rng.choice(SIDES)
        ids += [
            out.failure_id
            for out in put(store, [one], side=side, cause=cause, abstained=rng.random() < 0.2)
            if out.failure_id
        ]
    return ids


def count(store: Store) -> int:
    with store.unit_of_work() as work:
        return work.rollups.recount(NOON + DAY, limit=1_000)


def figures(store: Store) -> Figures:
    """What the overview shows of periods that begin within an hour, in steps of six hours, days and weeks."""
    with store.reading() as reading:
        return {
            length: (
                reading.statistics.stats(NOON - length * DAY - timedelta(minutes=7), NOON, detail="shares"),
                reading.statistics.series(NOON - length * DAY - timedelta(minutes=7), NOON),
            )
            for length in (3, 7, 28, 365)
        }


def from_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> Figures:
    with monkeypatch.context() as patched:
        patched.setattr(sums, "conditions", lambda *_: None)
        patched.setattr(CountCache, "get", lambda _self, _key, read: tuple(read()))
        return figures(store)


def from_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> Figures:
    with monkeypatch.context() as patched:
        patched.setattr(rollups, "SHORT", timedelta(days=10_000))
        return figures(store)


def rows_of_sums(store: Store) -> list[tuple[Any, ...]]:
    with engine_of(store).connect() as connection:
        of_hours = connection.execute(select(hour_counts).where(hour_counts.c.kind.in_(KINDS))).all()
        of_days = connection.execute(select(day_counts).where(day_counts.c.scope == "sums")).all()
    return sorted(tuple(row) for row in of_hours) + sorted(tuple(row) for row in of_days)


@pytest.mark.slow
def test_sums_counts_and_rows_agree_after_retries_late_events_and_corrections(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(7)
    failures = store_some(store, range(40), rng)
    count(store)
    assert rows_of_sums(store)
    for turn in range(2):
        # Late attempts, also of jobs that are counted already, and corrections of failures.
        failures += store_some(store, range(20 * turn, 20 * turn + 40), random.Random(100 + turn))
        with store.unit_of_work() as work:
            for failure in rng.sample(failures, 10):
                side, cause = rng.choice(SIDES)
                work.failures.revise(failure, verdict(side=side, cause=cause))
        for counted in (False, True):  # before and after the hours are counted again
            assert figures(store) == from_counts(store, monkeypatch) == from_rows(store, monkeypatch), (turn, counted)
            count(store)
    assert figures(store)[7][0].failed > 20


def test_a_question_about_all_jobs_reads_sums_only(store: Store) -> None:
    store_some(store, range(40), random.Random(3))
    count(store)
    wanted = figures(store)
    with store.unit_of_work() as work:
        connection = connection_of(work.rollups)
        connection.execute(hour_counts.delete().where(hour_counts.c.kind.not_in(KINDS)))
        connection.execute(day_counts.delete().where(day_counts.c.kind == "failures", day_counts.c.scope != "sums"))
    assert figures(store) == wanted


def test_an_hour_that_an_earlier_release_counted_is_read_from_its_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_some(store, range(40), random.Random(5))
    count(store)
    before = len(rows_of_sums(store))
    with monkeypatch.context() as patched:
        patched.setattr(sums, "write_hour", lambda *_: None)  # an earlier release writes none
        patched.setattr(sums, "write_day", lambda *_: None)
        put(store, [job(f"late{n}", ended_at=NOON - n * 5 * HOUR) for n in range(1, 30)], side="hardware")
        assert count(store) == 29
    assert 0 < len(rows_of_sums(store)) < before
    assert figures(store) == from_rows(store, monkeypatch)


def test_an_upgrade_sums_the_counted_hours_and_a_downgrade_removes_the_sums(store: Store) -> None:
    store_some(store, range(40), random.Random(9))
    count(store)
    wanted, shown = rows_of_sums(store), figures(store)
    with engine_of(store).begin() as connection:
        command.downgrade(schema.config(connection), "0024")
        assert connection.execute(text("SELECT count(*) FROM hours")).scalar_one() > 0
    assert rows_of_sums(store) == []
    store.upgrade()
    assert rows_of_sums(store) == wanted
    assert figures(store) == shown
