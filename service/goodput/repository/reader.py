"""Reads all counts of goodput from one snapshot: sums over attempts, times to detect failures, to close incidents."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, Float, case, cast, func, literal_column, or_, select

from service.contracts.event import FAILURE_STATUSES
from service.failures.tables import failures, verdicts
from service.goodput.records import AttemptSum, GoodputCounts, IncidentTimes, Quantiles, Times
from service.goodput.repository import expressions, runs
from service.incidents.tables import incidents
from service.jobs.tables import jobs
from service.sql import portable
from service.sql.packing import unpack
from service.sql.reader import Reader
from service.sql.types import clean, utc
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository.scope_conditions import ended_within
from service.times import instant_of

_HOUR_S, _DAY_S = 3_600.0, 86_400.0
# Events that arrive later are imported history or repaired queues: their delay is not the service's.
_LATEST_ARRIVAL = timedelta(days=1)
_HANGS_READ = 1_000  # the newest hangs of a period whose verdicts are read


class GoodputReader(Reader):
    """Reads the counts that goodput and reliability figures are computed from."""

    def attempts(self, bounds: Sequence[datetime], scope: Scope) -> tuple[AttemptSum, ...]:
        """Sums of the attempts that ended between the first and the last of `bounds`, by part of the period."""
        return _attempt_sums(self._connection, bounds, scope)

    def counts(self, bounds: Sequence[datetime], scope: Scope) -> GoodputCounts:
        """The counts of the attempts that ended between the first and the last of `bounds`.

        Args:
            bounds: the limits of the parts (days or weeks) of the period in order, at least two.
            scope: which jobs count. Incidents have a cluster, but no team or queue.
        """
        start, end = bounds[0], bounds[-1]
        connection = self._connection
        return GoodputCounts(
            tuple(bounds),
            _attempt_sums(connection, bounds, scope),
            runs.sums(connection, start, end, scope),
            Times(
                runs.times_to_restart(connection, start, end, scope),
                _to_verdict(connection, start, end, scope),
                _of_hangs(connection, start, end, scope),
            ),
            _to_close(connection, start, end, scope.cluster),
        )


def _attempt_sums(connection: Connection, bounds: Sequence[datetime], scope: Scope) -> tuple[AttemptSum, ...]:
    """Sums of the attempts that ended between the first and the last of `bounds`, by part, status, cause and size."""
    ids = expressions.ids_of_failures(connection, bounds[0], bounds[-1], scope)
    ran = portable.seconds(connection, jobs.c.ended_at, jobs.c.started_at)
    held = ran * jobs.c.gpus / _HOUR_S
    known = expressions.measured()
    # A checkpoint or a clock can make the stored loss larger than the hours held.
    lost = case((jobs.c.gpu_hours_lost < held, jobs.c.gpu_hours_lost), else_=held)
    columns = (
        expressions.part(bounds).label("part"),
        jobs.c.status,
        case((failures.c.abstained, UNKNOWN), else_=failures.c.side).label("side"),
        case((failures.c.abstained, UNKNOWN), else_=failures.c.cause).label("cause"),
        expressions.size().label("size"),
    )
    rows = connection.execute(
        select(
            *columns,
            func.count().label("attempts"),
            func.sum(case((known, 1), else_=0)).label("measured"),
            func.sum(case((known, held), else_=0.0)).label("held"),
            func.sum(case((known, lost), else_=0.0)).label("lost"),
            func.sum(case((known, ran / _HOUR_S), else_=0.0)).label("job_hours"),
            func.sum(case((known, ran / _DAY_S * cast(expressions.node_count(connection), Float)), else_=0.0)).label(
                "node_days"
            ),
        )
        .select_from(jobs.outerjoin(failures, (failures.c.id == jobs.c.failure_id) & failures.c.id.between(*ids)))
        .where(*ended_within(jobs, bounds[0], bounds[-1], scope))
        # By position: an expression with parameters is another one to PostgreSQL.
        .group_by(*(literal_column(str(n + 1)) for n in range(len(columns))))
        .order_by(*(literal_column(str(n + 1)) for n in range(len(columns))))
    )
    return tuple(
        AttemptSum(
            row.part,
            row.status,
            row.side,
            row.cause,
            row.size,
            row.attempts,
            int(row.measured),
            float(row.held),
            float(row.lost),
            float(row.job_hours),
            float(row.node_days),
        )
        for row in rows
    )


def _to_verdict(connection: Connection, since: datetime, until: datetime, scope: Scope) -> Quantiles:
    """Seconds from the end of a failed attempt to its first verdict, of events that arrived within a day."""
    delay = portable.seconds(connection, verdicts.c.at, jobs.c.ended_at)
    arrival = portable.seconds(connection, jobs.c.received_at, jobs.c.ended_at)
    values = (
        select(case((delay > 0, delay), else_=0.0).label("value"))
        .select_from(jobs.join(verdicts, (verdicts.c.failure_id == jobs.c.failure_id) & (verdicts.c.version == 1)))
        .where(
            *ended_within(jobs, since, until, scope),
            verdicts.c.failure_id.between(*expressions.ids_of_failures(connection, since, until, scope)),
            jobs.c.status.in_(FAILURE_STATUSES),
            arrival <= _LATEST_ARRIVAL.total_seconds(),
        )
    )
    return expressions.quantiles(connection, values)


def _of_hangs(connection: Connection, since: datetime, until: datetime, scope: Scope) -> Quantiles:
    """Seconds from the last progress in the log of a hang to its end."""
    rows = connection.execute(
        select(jobs.c.ended_at, verdicts.c.body)
        .select_from(
            jobs.join(failures, failures.c.id == jobs.c.failure_id).join(
                verdicts, (verdicts.c.failure_id == failures.c.id) & (verdicts.c.version == failures.c.version)
            )
        )
        .where(
            *ended_within(jobs, since, until, scope),
            or_(failures.c.platform_symptom == "hang", jobs.c.status == "hung"),
            verdicts.c.body.is_not(None),
        )
        .order_by(jobs.c.ended_at.desc())
        .limit(_HANGS_READ)
    )
    seconds = sorted(
        (row.ended_at - at).total_seconds() for row in rows if (at := _progress_at(row.body)) and at <= row.ended_at
    )
    if not seconds:
        return Quantiles()
    last = len(seconds)
    return Quantiles(last, seconds[(last + 1) // 2 - 1], seconds[-(-19 * last // 20) - 1])


def _to_close(connection: Connection, since: datetime, until: datetime, cluster: str | None) -> IncidentTimes:
    """Incidents opened in a period, and the time until they were closed."""
    wanted = [incidents.c.opened_at >= utc(since), incidents.c.opened_at < utc(until)]
    if cluster is not None:
        wanted.append(incidents.c.cluster == clean(cluster))
    opened, closed = connection.execute(select(func.count(), func.count(incidents.c.closed_at)).where(*wanted)).one()
    took = portable.seconds(connection, incidents.c.closed_at, incidents.c.opened_at)
    values = select(took.label("value")).where(*wanted, incidents.c.closed_at.is_not(None))
    return IncidentTimes(opened, closed, expressions.quantiles(connection, values))


def _progress_at(body: bytes) -> datetime | None:
    progress = unpack(body).get("progress") or {}
    return instant_of(progress.get("at"))
