"""Times to detect failures and hangs, and to close incidents."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, case, func, or_, select

from service.contracts.event import FAILURE_STATUSES
from service.failures.tables import failures, verdicts
from service.goodput.records import IncidentTimes, Quantiles
from service.goodput.repository import expressions
from service.incidents.tables import incidents
from service.jobs.tables import jobs
from service.sql import portable
from service.sql.packing import unpack
from service.sql.types import clean, utc
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import ended_within
from service.times import instant_of

# Events that arrive later are imported history or repaired queues: their delay is not the service's.
LATEST_ARRIVAL = timedelta(days=1)
HANGS_READ = 1_000  # the newest hangs of a period whose verdicts are read


def to_verdict(connection: Connection, since: datetime, until: datetime, scope: Scope) -> Quantiles:
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
            arrival <= LATEST_ARRIVAL.total_seconds(),
        )
    )
    return expressions.quantiles(connection, values)


def of_hangs(connection: Connection, since: datetime, until: datetime, scope: Scope) -> Quantiles:
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
        .limit(HANGS_READ)
    )
    seconds = sorted(
        (row.ended_at - at).total_seconds() for row in rows if (at := _progress_at(row.body)) and at <= row.ended_at
    )
    if not seconds:
        return Quantiles()
    last = len(seconds)
    return Quantiles(last, seconds[(last + 1) // 2 - 1], seconds[-(-19 * last // 20) - 1])


def to_close(connection: Connection, since: datetime, until: datetime, cluster: str | None) -> IncidentTimes:
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
