"""Counts of jobs of the weekly report: a job with several attempts counts once, by its last attempt of the week."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Subquery, and_, case, func, literal_column, select

from service.contracts.event import FAILURE_STATUSES, FINISHED_STATUSES
from service.failures.tables import failures
from service.goodput.repository import runs
from service.jobs.repository import neighbours
from service.jobs.tables import jobs
from service.reports.records import EVERYTHING
from service.sql.reader import Reader
from service.sql.types import utc
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository.scope_conditions import ended_within


@dataclass(frozen=True, slots=True)
class JobCluster:
    """Failures of one fingerprint and side on one day; `jobs` counts jobs whose last attempt failed then."""

    fingerprint: str | None
    side: str
    day: int
    jobs: int
    attempts: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class PeriodJobs:
    """Jobs of a period by their last attempt in it; `by_day` are the finished jobs of each day."""

    finished: int
    failed: int
    by_day: tuple[int, ...]
    clusters: tuple[JobCluster, ...]


class WeeklyJobReader(Reader):
    """Reads counts of jobs in a week."""

    def counts(self, bounds: Sequence[datetime], scope: Scope = EVERYTHING) -> PeriodJobs:
        """The jobs of consecutive days; day n lasts from `bounds[n]` to `bounds[n + 1]`."""
        ended = _ended(self._connection, [utc(bound) for bound in bounds], scope)
        failed = case((ended.c.status.in_(FAILURE_STATUSES), ended.c.is_last), else_=0)
        days = self._connection.execute(
            select(
                ended.c.day,
                func.sum(ended.c.is_last).label("finished"),
                func.sum(failed).label("failed"),
            ).group_by(ended.c.day)
        ).all()
        by_day = [0] * (len(bounds) - 1)
        for row in days:
            by_day[row.day] = int(row.finished)
        side = case((failures.c.abstained, UNKNOWN), else_=func.coalesce(failures.c.side, UNKNOWN))
        found = self._connection.execute(
            select(
                failures.c.fingerprint.label("fingerprint"),
                side.label("side"),
                ended.c.day.label("day"),
                func.sum(failed).label("jobs"),
                func.count().label("attempts"),
                func.sum(ended.c.gpu_hours_lost).label("lost"),
            )
            .select_from(ended.outerjoin(failures, failures.c.id == ended.c.failure_id))
            .where(ended.c.status.in_(FAILURE_STATUSES))
            # By position: an expression with parameters is another one to PostgreSQL.
            .group_by(literal_column("1"), literal_column("2"), literal_column("3"))
            .order_by(literal_column("1"), literal_column("2"), literal_column("3"))
        )
        clusters = tuple(
            JobCluster(row.fingerprint, row.side, row.day, int(row.jobs), row.attempts, row.lost) for row in found
        )
        return PeriodJobs(sum(by_day), sum(int(row.failed) for row in days), tuple(by_day), clusters)

    def lineages(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> int:
        """The number of lineages that finished in a period: a job and its resubmissions are one."""
        finished = (*ended_within(jobs, since, until, scope), jobs.c.status.in_(FINISHED_STATUSES))
        attempts = runs.attempts_of_runs(self._connection, finished)
        return int(self._connection.execute(select(func.coalesce(func.sum(attempts.c.begins), 0))).scalar_one())


def _ended(connection: Connection, bounds: Sequence[datetime], scope: Scope) -> Subquery:
    """The finished attempts of a period with their day, and whether each is the last one of its job."""
    day: ColumnElement[int] = case(
        *((jobs.c.ended_at < end, number) for number, end in enumerate(bounds[1:])), else_=len(bounds) - 2
    )
    own = (jobs.c.cluster, jobs.c.job_id, func.coalesce(jobs.c.user_name, ""))

    def following(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return func.lead(column).over(partition_by=own, order_by=(jobs.c.ended_at, jobs.c.id))

    found = (
        select(
            *(jobs.c.failure_id, jobs.c.status, jobs.c.gpu_hours_lost),
            day.label("day"),
            *neighbours.columns(neighbours.THIS, lambda column: column),
            *neighbours.columns("next_", following),
        )
        .where(*ended_within(jobs, bounds[0], bounds[-1], scope), jobs.c.status.in_(FINISHED_STATUSES))
        .subquery()
    )
    goes_on = and_(found.c.next_ended_at.is_not(None), neighbours.same_job(connection, found, neighbours.THIS, "next_"))
    return select(
        *(found.c[name] for name in ("failure_id", "status", "gpu_hours_lost", "day")),
        case((goes_on, 0), else_=1).label("is_last"),
    ).subquery()
