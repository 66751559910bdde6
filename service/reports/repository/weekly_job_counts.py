"""Counts of jobs of the weekly report: a job with several attempts counts once, by its last attempt of the week."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Subquery, and_, case, func, literal_column, select

from service.contracts.event import FAILURE_STATUSES, Status
from service.failures.tables import failures
from service.jobs.tables import jobs
from service.reports.records import EVERYTHING
from service.resubmissions.tables import lineages
from service.sql.reader import Reader
from service.sql.types import utc
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import in_scope

UNKNOWN = "unknown"
_FAILED = tuple(sorted(FAILURE_STATUSES))
_FINISHED = (*_FAILED, Status.SUCCEEDED.value)


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
        ended = _ended([utc(bound) for bound in bounds], scope)
        is_last = ended.c.place == 1
        failed = case((and_(is_last, ended.c.status.in_(_FAILED)), 1), else_=0)
        days = self._connection.execute(
            select(
                ended.c.day,
                func.sum(case((is_last, 1), else_=0)).label("finished"),
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
            .select_from(ended.outerjoin(failures, failures.c.id == ended.c.id))
            .where(ended.c.status.in_(_FAILED))
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
        root = func.coalesce(lineages.c.root_job_id, jobs.c.job_id)
        same = (lineages.c.cluster == jobs.c.cluster) & (lineages.c.job_id == jobs.c.job_id)
        distinct = (
            select(jobs.c.cluster, root.label("root"), func.coalesce(jobs.c.user_name, "").label("user"))
            .select_from(jobs.outerjoin(lineages, same))
            .where(
                jobs.c.ended_at >= utc(since),
                jobs.c.ended_at < utc(until),
                jobs.c.counted,
                jobs.c.status.in_(_FINISHED),
                *in_scope(jobs, scope),
            )
            .distinct()
            .subquery()
        )
        return int(self._connection.execute(select(func.count()).select_from(distinct)).scalar_one())


def _ended(bounds: Sequence[datetime], scope: Scope) -> Subquery:
    """The finished attempts of a period with their day; `place` 1 is the last attempt of its job."""
    day: ColumnElement[int] = case(
        *((jobs.c.ended_at < end, number) for number, end in enumerate(bounds[1:])), else_=len(bounds) - 2
    )
    # Clusters reuse job ids; another user's job with the same id is another job.
    place = func.row_number().over(
        partition_by=(jobs.c.cluster, jobs.c.job_id, func.coalesce(jobs.c.user_name, "")),
        order_by=(jobs.c.ended_at.desc(), jobs.c.id.desc()),
    )
    return (
        select(jobs.c.id, jobs.c.status, jobs.c.gpu_hours_lost, day.label("day"), place.label("place"))
        .where(
            jobs.c.ended_at >= bounds[0],
            jobs.c.ended_at < bounds[-1],
            jobs.c.counted,
            jobs.c.status.in_(_FINISHED),
            *in_scope(jobs, scope),
        )
        .subquery()
    )
