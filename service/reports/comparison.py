"""Significant changes of a week from the weeks before it.

Failures come in clusters: one fault fails many jobs of one group in a few days, and an outage fails many groups on one
day. A change is therefore significant only if two permutation tests agree. The first moves whole episodes (failures of
a group on consecutive days) between the weeks, in proportion to their finished jobs. The second exchanges whole days
between the weeks, weekday by weekday. Both compare rates per finished job and hold for amounts of any distribution.
Holm's correction keeps the probability that an unchanged week shows any arrow at 5 % or less.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from service.reports.weekly_facts import Cluster, WeekCounts

Direction = Literal["up", "down"]
Measure = Literal["jobs", "gpu_hours"]
Metric = tuple[str, Measure]  # a side or ALL, and what is compared per finished job
ALL = "all"
ARROWS: Mapping[Direction | None, str] = {"up": "▲ more", "down": "▼ less", None: ""}
COMPARED = 4  # previous weeks that a change is measured against
LEAST_WEEKS = 3  # complete previous weeks that an arrow needs
DAYS = 7
_LEVEL = 0.05
_DRAWS, _SEED = 1_999, 20_230
_MOST_EPISODES = 5_000
_AT_ONCE = 500  # draws in memory
Matrix = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The weeks compared with, the number of figures compared, and the direction of each significant change."""

    weeks: tuple[WeekCounts, ...] = ()
    made: int = 0
    directions: Mapping[Metric, Direction] = field(default_factory=dict)

    def of(self, key: str, measure: Measure) -> Direction | None:
        """The direction of a significant change of a side, or of all failures; None if not significant."""
        return self.directions.get((key, measure))


def complete(weeks: Sequence[WeekCounts]) -> list[bool]:
    """Whether each week is complete: jobs finished on every weekday on which they did in most of these weeks."""
    running = [week for week in weeks if week.jobs.finished]
    usual = [day for day in range(DAYS) if sum(week.jobs.by_day[day] > 0 for week in running) * 2 > len(running)]
    return [bool(week.jobs.finished) and all(week.jobs.by_day[day] for day in usual) for week in weeks]


def compare(weeks: Sequence[WeekCounts], *, over: bool = True) -> Comparison:
    """Compare the last of these weeks with the complete ones among the previous four.

    There are no arrows if the last week is not `over` or not complete, or fewer than three previous weeks are complete.
    """
    recent = weeks[-1 - COMPARED :]
    usable = complete(recent)
    before = tuple(week for week, whole in zip(recent[:-1], usable[:-1], strict=True) if whole)
    if not over or not usable[-1] or len(before) < LEAST_WEEKS:
        return Comparison(before)
    sides = sorted({cluster.side for week in (*before, recent[-1]) for cluster in week.jobs.clusters})
    metrics: list[Metric] = [
        (ALL, "jobs"),
        *((side, "jobs") for side in sides),
        *((side, "gpu_hours") for side in sides),
    ]
    chances, up = _chances([*before, recent[-1]], metrics)
    directions: dict[Metric, Direction] = {}
    for place, number in enumerate(np.argsort(chances, kind="stable")):
        if chances[number] > _LEVEL / (len(metrics) - place):
            break
        directions[metrics[number]] = "up" if up[number] else "down"
    return Comparison(before, len(metrics), directions)


def episodes(clusters: Sequence[Cluster]) -> list[list[Cluster]]:
    """The failures of each group on consecutive days; failures without a group are an episode of their day."""
    found: list[list[Cluster]] = []
    for cluster in sorted(clusters, key=lambda one: (one.group is not None, one.group or "", one.day)):
        last = found[-1][-1] if found else None
        same = last is not None and last.group == cluster.group
        gap = 0 if cluster.group is None else 1
        if last is not None and same and cluster.day - last.day <= gap:
            found[-1].append(cluster)
        else:
            found.append([cluster])
    return found


def _chances(weeks: Sequence[WeekCounts], metrics: Sequence[Metric]) -> tuple[Matrix, NDArray[np.bool_]]:
    """The two-sided probability of each change by chance, the larger of both tests, and whether it is a rise."""
    rng = np.random.default_rng(_SEED)
    by_episode, up = _by_episode(weeks, metrics, rng)
    by_day = _by_day(weeks, metrics, rng)
    return np.maximum(by_episode, by_day), up


def _values(clusters: Sequence[Cluster], metrics: Sequence[Metric]) -> list[float]:
    return [
        sum(getattr(cluster, measure) for cluster in clusters if side in (ALL, cluster.side))
        for side, measure in metrics
    ]


def _by_episode(
    weeks: Sequence[WeekCounts], metrics: Sequence[Metric], rng: np.random.Generator
) -> tuple[Matrix, NDArray[np.bool_]]:
    found = [_values(one, metrics) for week in weeks for one in episodes(week.jobs.clusters)]
    now = np.asarray(_values(weeks[-1].jobs.clusters, metrics), dtype=float)
    amounts = np.asarray(found, dtype=float).reshape(-1, len(metrics))
    part = weeks[-1].jobs.finished / sum(week.jobs.finished for week in weeks)
    up = now > part * amounts.sum(axis=0)
    if len(amounts) > _MOST_EPISODES:  # pooled episodes make the test a little more careful
        pooled = np.zeros((_MOST_EPISODES, len(metrics)))
        np.add.at(pooled, rng.integers(0, _MOST_EPISODES, len(amounts)), amounts)
        amounts = pooled
    # einsum runs in this thread; a product by BLAS waits for its other threads on a busy machine.
    chosen = np.concatenate(
        [
            np.einsum("de,em->dm", (rng.random((_AT_ONCE, len(amounts))) < part).astype(float), amounts)
            for _ in range(-(-_DRAWS // _AT_ONCE))
        ]
    )
    return _two_sided(now, chosen), up


def _by_day(weeks: Sequence[WeekCounts], metrics: Sequence[Metric], rng: np.random.Generator) -> Matrix:
    amounts = np.zeros((len(weeks), DAYS, len(metrics)))
    for number, week in enumerate(weeks):
        for day in range(DAYS):
            amounts[number, day] = _values([one for one in week.jobs.clusters if one.day == day], metrics)
    finished = np.asarray([week.jobs.by_day for week in weeks], dtype=float)
    drawn = rng.integers(0, len(weeks), (_DRAWS, DAYS))
    chosen = amounts[drawn, np.arange(DAYS)].sum(axis=1)
    jobs = finished[drawn, np.arange(DAYS)].sum(axis=1)
    return _two_sided(
        _contrast(amounts[-1].sum(axis=0)[None, :], finished[-1].sum()[None], amounts, finished)[0],
        _contrast(chosen, jobs, amounts, finished),
    )


def _contrast(chosen: Matrix, jobs: Matrix, amounts: Matrix, finished: Matrix) -> Matrix:
    """The rate per finished job of the chosen days, less that of all others."""
    others = np.maximum(finished.sum() - jobs, 1.0)[:, None]
    result: Matrix = chosen / np.maximum(jobs, 1.0)[:, None] - (amounts.sum(axis=(0, 1)) - chosen) / others
    return result


def _two_sided(now: Matrix, drawn: Matrix) -> Matrix:
    """Probabilities of a value at least as extreme; rounding must not make equal sums differ."""
    tolerance = 1e-9 * (np.abs(now) + np.abs(drawn).max(axis=0, initial=0.0))
    above = (1 + (drawn >= now - tolerance).sum(axis=0)) / (1 + len(drawn))
    below = (1 + (drawn <= now + tolerance).sum(axis=0)) / (1 + len(drawn))
    result: Matrix = np.minimum(2 * np.minimum(above, below), 1.0)
    return result
