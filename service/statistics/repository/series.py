"""Failures over time: counts by side in steps of five minutes to a week."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row

from service.contracts.event import FAILURE_STATUSES, FINISHED_STATUSES
from service.sql.types import utc
from service.statistics.records import PeriodCount, Scope
from service.statistics.repository import rollups, row_counts, sums
from service.times import EPOCH

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = 7 * DAY
# Up to this period, steps of this length. Steps below an hour are only for periods that are read from rows; longer
# periods are in weeks, as 365 bars are more than a page can show.
STEPS = ((3 * HOUR, timedelta(minutes=5)), (48 * HOUR, HOUR), (9 * DAY, 6 * HOUR), (92 * DAY, DAY))
MOST_PARTS = 400  # of a series; for longer periods the latest ones
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)
# The calendar has no week before the first and after the last of these: a series begins and ends within it.
_EARLIEST, _LATEST = datetime(1, 2, 1, tzinfo=UTC), datetime(9999, 12, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Counted:
    """Jobs of one part, hour, day or week: their number, and their lost GPU-hours."""

    at: datetime
    jobs: int
    lost: float
    status: str = ""
    side: str = ""


@dataclass(slots=True)
class _Part:
    """The counts of one part while they are summed."""

    finished: int = 0
    failed: int = 0
    by_side: Counter[str] = field(default_factory=Counter)
    lost: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    lost_of_failed: float = 0.0


def step_of(since: datetime, until: datetime) -> timedelta:
    """The length of the parts of a period."""
    return next((step for longest, step in STEPS if until - since <= longest), WEEK)


def read(
    connection: Connection,
    since: datetime,
    until: datetime,
    scope: Scope,
    split_of: Callable[[datetime, datetime], rollups.PeriodParts],
    jobs_of: Callable[[rollups.PeriodParts, Scope, timedelta], Iterable[Counted]],
) -> tuple[PeriodCount, ...]:
    """The jobs that ended in [since, until), in parts that begin at multiples of their length, weeks on Monday (UTC).

    Empty parts are included. `split_of` splits a period as `rollups.split` does, `jobs_of` counts jobs as `count_jobs`.
    """
    since, until = utc(since), utc(until)
    if since >= until:
        return ()
    step = step_of(since, until)
    until = min(until, _LATEST)
    last = _MONDAY + -((_MONDAY - until) // step) * step
    since = max(since, last - MOST_PARTS * step, _EARLIEST)
    if since >= until:
        return ()
    first = _MONDAY + (since - _MONDAY) // step * step
    found: defaultdict[datetime, _Part] = defaultdict(_Part)
    split = split_of(since, until)

    def part_of(at: datetime) -> _Part:
        return found[_MONDAY + (at - _MONDAY) // step * step]

    for row in jobs_of(split, scope, step):
        if row.status not in FINISHED_STATUSES:
            continue
        part = part_of(row.at)
        part.finished += row.jobs
        if row.status in FAILURE_STATUSES:
            part.failed += row.jobs
            part.lost_of_failed += row.lost
    for row in count_failures(connection, split, scope, step):
        part = part_of(row.at)
        part.by_side[row.side] += row.jobs
        part.lost[row.side] += row.lost
    return tuple(
        _counted(max(begin, since), min(begin + step, until), found[begin])
        for begin in (first + number * step for number in range(-((first - until) // step)))
    )


def _counted(begin: datetime, end: datetime, part: _Part) -> PeriodCount:
    sides, lost = dict(part.by_side), dict(part.lost)
    if (left := part.failed - sum(sides.values())) > 0:
        sides["unknown"] = sides.get("unknown", 0) + left
        lost["unknown"] = lost.get("unknown", 0.0) + max(0.0, part.lost_of_failed - sum(lost.values()))
    return PeriodCount(begin, end, part.finished, part.failed, sides, lost)


def count_jobs(connection: Connection, split: rollups.PeriodParts, scope: Scope, step: timedelta) -> Iterator[Counted]:
    """Jobs by status and time: the beginning of a part, hour, day or week, the longest of these that is within `step`.

    A pair of status and time may occur more than once.
    """
    unit = min(step, HOUR)
    for row in row_counts.read(connection, split.ranges, sums.JOBS, scope, "status", unit=unit):
        yield Counted(EPOCH + row.part * unit, row.jobs, row.lost, status=row.status)
    for row in rollups.rows(connection, split, sums.JOBS, scope, "status", step=step):
        yield Counted(row.at, row.jobs, row.lost, status=row.status)


def count_failures(
    connection: Connection, split: rollups.PeriodParts, scope: Scope, step: timedelta
) -> Iterator[Counted]:
    """Failed jobs by side and time, as `count_jobs`."""
    unit = min(step, HOUR)
    for row in row_counts.read(connection, split.ranges, sums.FAILURES, scope, "side", unit=unit):
        yield Counted(EPOCH + row.part * unit, row.jobs, row.lost, side=row.side)
    found: Iterable[Row[Any]] = rollups.rows(connection, split, sums.FAILURES, scope, "status", "side", step=step)
    for row in found:
        if row.status in FAILURE_STATUSES:
            yield Counted(row.at, row.jobs, row.lost, side=row.side)
