"""Jobs of a week, compared with a plain computation over the same attempts, on both databases."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from service import weeks
from service.db.session import Store
from service.jobs.records import NewJob
from tests.service.sample_rows import job, put, succeeded

BERLIN = ZoneInfo("Europe/Berlin")
WEEK = weeks.parse("2026-W43")  # ends with the change from summer time: Sunday has 25 hours
FIRST = datetime(2026, 10, 18, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ended(at: datetime) -> dict[str, Any]:
    """The times of an attempt of an hour."""
    return {"started_at": at - HOUR, "ended_at": at}


def attempts(seed: int) -> list[NewJob]:
    """Attempts of 60 jobs around the week in any order; some job ids are used by two users."""
    rng, made = random.Random(seed), []
    for number in range(60):
        for attempt in range(rng.choice([1, 1, 2, 4])):
            failed = rng.random() < 0.6
            ended = FIRST + timedelta(hours=rng.randrange(-30, 200), minutes=rng.randrange(60))
            one = job if failed else succeeded
            made.append(
                one(
                    f"{number}.{attempt}",
                    job_id=str(number % 50),
                    user=f"user{number // 50}",
                    attempt=attempt,
                    started_at=ended - HOUR,
                    ended_at=ended,
                    gpu_hours_lost=float(rng.randrange(1, 9)) if failed else 0.0,
                )
            )
    rng.shuffle(made)
    return made


def test_a_job_counts_once_by_its_last_attempt_of_the_week(store: Store) -> None:
    rows = attempts(4)
    put(store, rows)
    bounds = WEEK.days(BERLIN)
    assert bounds[-1] - bounds[-2] == timedelta(hours=25)
    with store.reading() as reading:
        found = reading.weekly_job_counts.counts(bounds)
    inside = [one for one in rows if bounds[0] <= one.ended_at < bounds[-1]]
    last = {
        key: max((one for one in inside if (one.job_id, one.user) == key), key=lambda one: one.ended_at)
        for key in {(one.job_id, one.user) for one in inside}
    }
    days = Counter(one.ended_at.astimezone(BERLIN).weekday() for one in last.values())
    assert found.by_day == tuple(days[day] for day in range(7))
    assert found.finished == len(last)
    assert found.failed == sum(one.status == "failed" for one in last.values())
    assert sum(one.jobs for one in found.clusters) == found.failed
    assert sum(one.attempts for one in found.clusters) == sum(one.status == "failed" for one in inside)
    hours = Counter[int]()
    for one in inside:
        hours[one.ended_at.astimezone(BERLIN).weekday()] += int(one.gpu_hours_lost)
    assert Counter({one.day: int(one.gpu_hours) for one in found.clusters}) == +hours


def test_one_job_that_fails_four_times_is_one_job(store: Store) -> None:
    put(store, [job(f"a{n}", **ended(FIRST + n * HOUR), job_id="1", attempt=n) for n in range(4)])
    with store.reading() as reading:
        found = reading.weekly_job_counts.counts(WEEK.days(BERLIN))
        assert reading.weekly_job_counts.lineages(*WEEK.span(BERLIN)) == 1
    [cluster] = found.clusters
    assert (found.finished, found.failed, cluster.jobs, cluster.attempts, cluster.gpu_hours) == (1, 1, 1, 4, 16.0)


def test_a_job_that_succeeds_in_the_end_has_not_failed(store: Store) -> None:
    put(store, [job("a", job_id="1", **ended(FIRST)), succeeded("b", job_id="1", **ended(FIRST + HOUR))])
    with store.reading() as reading:
        found = reading.weekly_job_counts.counts(WEEK.days(BERLIN))
    assert (found.finished, found.failed, sum(one.gpu_hours for one in found.clusters)) == (1, 0, 4.0)


def test_the_amounts_of_a_period_add_up_to_its_gpu_hours(store: Store) -> None:
    rows = attempts(5)
    put(store, rows)
    since, until = WEEK.span(BERLIN)
    with store.reading() as reading:
        amounts = reading.weekly_counts.amounts(since, until)
    assert sorted(amounts) == sorted(
        one.gpu_hours_lost for one in rows if since <= one.ended_at < until and one.gpu_hours_lost
    )


def used_again(**changes: Any) -> list[NewJob]:
    """A job that fails on Monday, and one with its id that succeeds on Thursday."""
    monday, thursday = FIRST + 9 * HOUR, FIRST + 81 * HOUR
    other = {"name": "eval", "submitted_at": thursday - HOUR, **ended(thursday)} | changes
    return [
        job("a", job_id="1", name="eval", submitted_at=monday - HOUR, **ended(monday)),
        succeeded("b", job_id="1", **other),
    ]


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        ({}, 2),  # submitted anew, three days later
        ({"name": "train"}, 2),
        ({"user": "bo"}, 2),
        ({"attempt": 1}, 1),  # a restart
        ({"submitted_at": FIRST + 8 * HOUR}, 1),
        ({"name": "train", "submitted_at": FIRST + 8 * HOUR}, 2),
        ({"submitted_at": FIRST + 9.5 * HOUR}, 1),  # a requeue
        ({"submitted_at": None}, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_job_id_that_is_used_again_is_another_job(
    store: Store, changes: dict[str, Any], jobs: int, *, backwards: bool
) -> None:
    rows = used_again(**changes)
    put(store, rows[::-1] if backwards else rows)
    with store.reading() as reading:
        found = reading.weekly_job_counts.counts(WEEK.days(BERLIN))
        lineages = reading.weekly_job_counts.lineages(*WEEK.span(BERLIN))
    assert (found.finished, found.failed, lineages) == (jobs, jobs - 1, jobs)


def test_the_failure_of_a_kubernetes_job_whose_pod_ended_first_has_its_side(store: Store) -> None:
    ran = {"job_id": "ml/Job/a", "started_at": FIRST}
    put(store, [job("pod", **ran, pod="a-0", ended_at=FIRST + HOUR)])
    put(store, [job("own", **ran, ended_at=FIRST + HOUR + timedelta(seconds=9))])
    with store.reading() as reading:
        found = reading.weekly_job_counts.counts(WEEK.days(BERLIN))
    assert (found.finished, found.failed) == (1, 1)
    assert [(one.side, one.jobs) for one in found.clusters] == [("user", 1)]
