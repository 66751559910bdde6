"""Counts and rates, all derived from rows."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Select,
    bindparam,
    func,
    select,
    text,
)

from service.contracts.event import FAILURE_STATUSES, FINISHED_STATUSES, Status
from service.contracts.page import COUNT_LIMIT
from service.dead_letters.repository import dead_letters
from service.deliveries.tables import outbox
from service.failures.tables import failures, pending_logs
from service.jobs.tables import jobs
from service.sql import paging
from service.sql.portable import values_by_set
from service.sql.types import UtcDateTime, utc
from service.statistics.count_cache import CountCache
from service.statistics.records import (
    ALL_JOBS,
    UNKNOWN,
    Health,
    HourCount,
    PeriodCount,
    Scope,
    Share,
    Stats,
    StatsDetail,
)
from service.statistics.repository import costliest, failure_shares, rollups, row_counts, series, sums
from service.statistics.repository.series import Counted
from service.statistics.tables import day_counts
from service.times import EPOCH

SERIES = timedelta(hours=24)
_HOUR = timedelta(hours=1)
_NAMES = values_by_set(day_counts.c.name, {kind: day_counts.c.scope == kind for kind in rollups.SCOPES}, most=100)


class StatisticsReader:
    """Reads statistics. `kept`: where counts of hours that are over are kept, for a session that does not write."""

    def __init__(self, connection: Connection, cache: CountCache | None = None) -> None:
        self._connection = connection
        self._cache = cache
        self._split: dict[tuple[datetime, datetime], rollups.PeriodParts] = {}
        self._jobs: dict[tuple[rollups.PeriodParts, Scope], list[Counted]] = {}

    def names(self) -> dict[str, tuple[str, ...]]:
        """The first clusters, queues and teams of jobs that ended on days before today, each in alphabetical order."""
        found = self._connection.execute(_NAMES).all()
        return {kind: tuple(row.value for row in found if row.name == kind) for kind in rollups.SCOPES}

    def failure_shares(self, kind: str, names: Collection[str], since: datetime) -> dict[str, float]:
        """The share of clusters, queues, teams or users among all failures since a time; see `failure_shares.read`."""
        return failure_shares.read(self._connection, kind, names, since)

    def _parts(self, since: datetime, until: datetime) -> rollups.PeriodParts:
        """The parts of a period. They stay the same while this object reads, as several questions of a page do."""
        found = self._split.get((since, until))
        if found is None:
            found = self._split[since, until] = rollups.split(self._connection, since, until, self._cache)
        return found

    def stats(self, since: datetime, until: datetime, scope: Scope = ALL_JOBS, detail: StatsDetail = "hours") -> Stats:
        """Counts over jobs that ended in [since, until); the hourly series covers at most its last 24 hours."""
        since, until = utc(since), utc(until)
        parts = self._parts(since, until)
        found = self._by_status(since, until, self._statuses(parts, scope))
        if detail == "status":
            return found
        by_side, by_cause = self._shares(parts, scope, found.failed, found.gpu_hours_lost)
        hours = self._hours(since, until, scope) if detail == "hours" else ()
        return replace(found, by_side=by_side, by_cause=by_cause, hours=hours)

    @staticmethod
    def _by_status(since: datetime, until: datetime, rows: Iterable[Row[Any] | Counted]) -> Stats:
        by_status: dict[str, int] = {}
        lost = 0.0
        for row in rows:
            by_status[row.status] = by_status.get(row.status, 0) + row.jobs
            lost += row.lost if row.status in FAILURE_STATUSES else 0.0
        failed = sum(by_status.get(status, 0) for status in FAILURE_STATUSES)
        succeeded = by_status.get(Status.SUCCEEDED, 0)
        return Stats(
            since=since,
            until=until,
            finished=succeeded + failed,
            succeeded=succeeded,
            failed=failed,
            preempted=by_status.get(Status.PREEMPTED, 0),
            cancelled=by_status.get(Status.CANCELLED, 0),
            rate=failed / (succeeded + failed) if succeeded + failed else None,
            gpu_hours_lost=lost,
            by_side=(),
            by_cause=(),
            by_status=by_status,
            hours=(),
        )

    def series(self, since: datetime, until: datetime, scope: Scope = ALL_JOBS) -> tuple[PeriodCount, ...]:
        """Failures by side over [since, until), in parts whose length follows from the period (`series.STEPS`)."""
        return series.read(self._connection, since, until, scope, self._parts, self._jobs_by_time)

    def _jobs_by_time(self, parts: rollups.PeriodParts, scope: Scope, step: timedelta) -> list[Counted]:
        """The jobs of a period over time; kept, since they also answer how many jobs it has."""
        found = self._jobs[parts, scope] = list(series.count_jobs(self._connection, parts, scope, step))
        return found

    def costliest(
        self,
        since: datetime,
        until: datetime,
        scope: Scope,
        *,
        most: int,
        of_span: Callable[[datetime, datetime], Iterable[costliest.Costly]],
        later_too: bool,
    ) -> list[int] | None:
        """The ids of the failures that lost the most GPU-hours in [since, until); see `costliest.read`.

        `later_too`: also those that ended after it, as a clock that is wrong says.
        """
        since, until = utc(since), utc(until)
        after = until if later_too else None
        return costliest.read(self._connection, self._parts(since, until), scope, most, of_span, after)

    def health(self, since: datetime) -> Health:
        """The health of the pipeline since `since`."""
        since = utc(since)
        found = self._connection.execute(_health(), {"since": since}).mappings().one()
        counts = {name: int(value) for name, value in found.items()}
        share = counts["abstained"] / counts["diagnosed"] if counts["diagnosed"] else None
        return Health(since=since, abstained_share=share, **counts)

    def _statuses(self, parts: rollups.PeriodParts, scope: Scope) -> Iterator[Row[Any] | Counted]:
        """Jobs and their GPU-hours by status; a status may occur more than once."""
        found = self._jobs.get((parts, scope))
        if found is not None:
            yield from found
            return

        yield from row_counts.read(self._connection, parts.ranges, sums.JOBS, scope, "status")
        yield from rollups.rows(self._connection, parts, sums.JOBS, scope, "status")

    def _causes(self, parts: rollups.PeriodParts, scope: Scope) -> Iterator[Row[Any]]:
        """Failed jobs and GPU-hours by side and cause ("unknown" if abstained); a pair may occur more than once."""
        yield from row_counts.read(self._connection, parts.ranges, sums.FAILURES, scope, "side", "cause")
        counted = rollups.rows(self._connection, parts, sums.FAILURES, scope, "status", "side", "cause")
        yield from (row for row in counted if row.status in FAILURE_STATUSES)

    def _shares(
        self, parts: rollups.PeriodParts, scope: Scope, failed: int, lost: float
    ) -> tuple[tuple[Share, ...], tuple[Share, ...]]:
        """Shares by side and by cause; jobs with an abstained verdict or none are "unknown"."""
        sides: Counter[str] = Counter()
        causes: Counter[str] = Counter()
        side_lost: defaultdict[str, float] = defaultdict(float)
        cause_lost: defaultdict[str, float] = defaultdict(float)
        for row in self._causes(parts, scope):
            sides[row.side] += row.jobs
            causes[row.cause] += row.jobs
            side_lost[row.side] += row.lost
            cause_lost[row.cause] += row.lost
        left = failed - sides.total()
        if left > 0:
            sides[UNKNOWN] += left
            causes[UNKNOWN] += left
            side_lost[UNKNOWN] += max(lost - sum(side_lost.values()), 0)
            cause_lost[UNKNOWN] += max(lost - sum(cause_lost.values()), 0)
        return _ranked(sides, side_lost), _ranked(causes, cause_lost)

    def _hours(self, since: datetime, until: datetime, scope: Scope) -> tuple[HourCount, ...]:
        if since >= until:
            return ()
        last = (until - timedelta(microseconds=1) - EPOCH) // _HOUR
        if until - since > SERIES:
            since = EPOCH + last * _HOUR - (SERIES - _HOUR)
        parts = self._parts(since, until)
        finished: Counter[datetime] = Counter()
        failed: Counter[datetime] = Counter()
        sides: defaultdict[datetime, Counter[str]] = defaultdict(Counter)
        for row in series.count_jobs(self._connection, parts, scope, _HOUR):
            if row.status in FAILURE_STATUSES:
                failed[row.at] += row.jobs
            if row.status in FINISHED_STATUSES:
                finished[row.at] += row.jobs
        for row in series.count_failures(self._connection, parts, scope, _HOUR):
            sides[row.at][row.side] += row.jobs
        hours = (EPOCH + number * _HOUR for number in range((since - EPOCH) // _HOUR, last + 1))
        return tuple(HourCount(hour, finished[hour], failed[hour], dict(sides[hour])) for hour in hours)


@cache
def _health() -> Select[Any]:
    """The query for the counts of `Health`, made once; its parameter is `since`."""
    since = bindparam("since", type_=UtcDateTime)
    number, abstained = func.count().label("diagnosed"), func.count().filter(failures.c.abstained).label("abstained")
    recent = select(number, abstained).where(failures.c.ended_at >= since).subquery()
    conflicting = select(jobs.c.conflicts).where(text("jobs.conflicts > 0")).limit(COUNT_LIMIT).subquery()
    counts = {
        "dead_letters": paging.bounded(select(dead_letters.c.id).where(dead_letters.c.at >= since)),
        "dead_letters_open": paging.bounded(select(dead_letters.c.id).where(dead_letters.c.resent_at.is_(None))),
        "conflicts": select(func.coalesce(func.sum(conflicting.c.conflicts), 0)),
        "pending_logs": paging.bounded(select(pending_logs.c.attempt_id)),
        "outbox_waiting": paging.bounded(select(outbox.c.available_at).where(outbox.c.done_at.is_(None))),
    }
    return select(recent, *(count.scalar_subquery().label(name) for name, count in counts.items()))


def _ranked(counts: Counter[str], lost: Mapping[str, float]) -> tuple[Share, ...]:
    return tuple(
        Share(key, count, lost.get(key, 0.0))
        for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
