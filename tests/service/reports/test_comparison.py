"""Arrows: few in unchanged weeks, with and without clusters, and none without three complete weeks before."""

from dataclasses import replace

import numpy as np
import pytest

from service.reports.comparison import ALL, Comparison, compare, episodes
from service.reports.records import Amount
from service.reports.weekly_facts import Cluster, JobCounts, WeekCounts
from tests.service.reports.sample_facts import week

WEEKDAYS = np.array([1.2, 1.2, 1.2, 1.2, 1.2, 0.5, 0.5]) / 7
SIDES, PARTS = ["hardware", "system", "unknown", "user"], [0.1, 0.2, 0.1, 0.6]


def random_week(rng: np.random.Generator, name: str, *, size: int = 1, days: int = 1, rise: float = 1.0) -> WeekCounts:
    """About 60 failures of 1,000 jobs in clusters of a mean size that last some days; losses have a heavy tail."""
    finished = tuple(int(one) for one in rng.poisson(1_000 * WEEKDAYS))
    clusters = []
    for group in range(rng.poisson(60 * rise / size)):
        first, side = int(rng.choice(7, p=WEEKDAYS)), str(rng.choice(SIDES, p=PARTS))
        for _ in range(rng.geometric(1 / size)):
            day = min(first + int(rng.integers(0, days)), 6)
            clusters.append(Cluster(f"{name}/{group}", side, day, 1, 1, float(rng.lognormal(0, 1.5))))
    jobs = JobCounts(sum(finished), len(clusters), sum(finished), finished, tuple(clusters))
    return WeekCounts(name, jobs.finished, jobs.failed, Amount(jobs.failed), jobs=jobs)


@pytest.mark.parametrize(("size", "days"), [(1, 1), (6, 1), (6, 3)])
def test_at_most_5_percent_of_unchanged_weeks_show_any_arrow(size: int, days: int) -> None:
    rng, tried = np.random.default_rng(11), 80
    shown = 0
    for number in range(tried):
        weeks = [random_week(rng, f"{number}.{back}", size=size, days=days) for back in range(5)]
        shown += bool(compare(weeks).directions)
    assert shown / tried <= 0.05


def test_a_doubled_failure_rate_is_found_in_most_weeks() -> None:
    rng, found = np.random.default_rng(3), 0
    for number in range(20):
        weeks = [random_week(rng, f"{number}.{back}") for back in range(4)]
        found += compare([*weeks, random_week(rng, f"{number}.now", rise=2)]).of(ALL, "jobs") == "up"
    assert found >= 18


def test_one_group_that_fails_all_week_is_no_change_of_the_fleet() -> None:
    quiet = [week(number) for number in range(43, 47)]
    burst = [Cluster("one fault", "user", day, 15, 15, 15.0) for day in range(7)]
    now = week(47)
    now = replace(now, jobs=replace(now.jobs, failed=175, clusters=(*now.jobs.clusters, *burst)))
    assert compare([*quiet, now]).directions == {}
    assert len(episodes(burst)) == 1


def test_more_jobs_at_the_same_rate_are_no_change() -> None:
    quiet = [week(number) for number in range(43, 47)]
    assert compare([*quiet, week(47, finished=3000, user=180, hardware=30)]).directions == {}


def test_three_complete_weeks_are_needed() -> None:
    rise = week(47, user=200)
    three = compare([*(week(number) for number in range(44, 47)), rise])
    assert (len(three.weeks), three.of(ALL, "jobs")) == (3, "up")
    assert compare([week(45), week(46), rise]) == Comparison((week(45), week(46)))
    assert compare([*(week(number) for number in range(43, 47)), rise], over=False).made == 0


def test_a_week_with_days_without_data_is_left_out() -> None:
    def partial(number: int) -> WeekCounts:
        whole = week(number)
        return replace(whole, jobs=replace(whole.jobs, by_day=(0, 0, *whole.jobs.by_day[2:])))

    weeks = [partial(43), *(week(number) for number in range(44, 47)), week(47, user=200)]
    assert [one.name for one in compare(weeks).weeks] == ["2026-W44", "2026-W45", "2026-W46"]
    assert compare([*(week(number) for number in range(43, 47)), partial(47)]).made == 0
    assert compare([partial(43), partial(44), week(45), week(46), week(47, user=200)]).directions == {}


def test_a_fleet_without_work_at_weekends_is_compared() -> None:
    def working(one: WeekCounts) -> WeekCounts:
        clusters = tuple(replace(cluster, day=cluster.day % 5) for cluster in one.jobs.clusters)
        return replace(one, jobs=replace(one.jobs, by_day=(200, 200, 200, 200, 200, 0, 0), clusters=clusters))

    weeks = [working(week(number)) for number in range(43, 47)]
    assert compare([*weeks, working(week(47, user=200))]).of(ALL, "jobs") == "up"
