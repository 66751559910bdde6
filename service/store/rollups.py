"""Hours counted once: what pages ask of long periods is read from a few rows an hour instead of every job's.

Whoever writes rows notes the hours they ended in (appended, so that no two writers meet on a row). In the background an
hour that is over is counted again from its rows and its notes go. An hour that has notes is read from the rows
themselves, so that the figures are always those of the rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Connection, case, cast, delete, func, insert, literal, select

from service.store import bulk
from service.store.tables import failures, jobs
from service.store.tables_reports import hour_notes, hours
from service.store.types import utc

HOUR = timedelta(hours=1)
SHORT = timedelta(hours=48)  # up to here the rows themselves are read
MANY = 48  # noted hours in a period beyond which they are, too
SETTLED = timedelta(minutes=30)  # after an hour's end: until then it fills
FOLD_LOCK = 0x6661756C_686F7572
UNKNOWN = "unknown"
_NOTES = 20_000  # read at a time
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JOBS, FAILURES = "jobs", "failures"


@dataclass(frozen=True, slots=True)
class Split:
    """A period in two: `ranges` are to be read from the rows, the whole hours in [first, last) but `noted` are not."""

    ranges: tuple[tuple[datetime, datetime], ...]
    first: datetime
    last: datetime
    noted: tuple[datetime, ...]


def note(connection: Connection, ended: Iterable[datetime]) -> None:
    """These hours' counts are no longer true."""
    wanted = sorted({floor(at) for at in ended})
    bulk.append(connection, hour_notes, ("hour",), [(hour,) for hour in wanted])


def floor(at: datetime) -> datetime:
    """The beginning of the hour."""
    return utc(at).replace(minute=0, second=0, microsecond=0)


def split(connection: Connection, since: datetime, until: datetime) -> Split:
    """How to read a period."""
    whole = Split(((since, until),), until, until, ())
    if until - since <= SHORT:
        return whole
    first, last = -(-(since - _EPOCH) // HOUR) * HOUR + _EPOCH, floor(until)
    noted = tuple(
        connection.execute(
            select(hour_notes.c.hour)
            .where(hour_notes.c.hour >= first, hour_notes.c.hour < last)
            .distinct()
            .order_by(hour_notes.c.hour)
            .limit(MANY + 1)
        ).scalars()
    )
    if len(noted) > MANY:
        return whole
    ranges: list[tuple[datetime, datetime]] = []
    for begin, end in ((since, first), *((hour, hour + HOUR) for hour in noted), (last, until)):
        if begin >= end:
            continue
        if ranges and ranges[-1][1] == begin:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((begin, end))
    return Split(tuple(ranges), first, last, noted)


def rows(
    connection: Connection, parts: Split, kind: str, scope: Mapping[str, str | None], *by: ColumnElement[Any]
) -> Sequence[Any]:
    """The counted hours of a period, grouped by columns of `hours`: these, `jobs` and `lost`."""
    if parts.first >= parts.last:
        return ()
    wanted = (
        select(
            *by, cast(func.sum(hours.c.jobs), BigInteger).label("jobs"), func.sum(hours.c.gpu_hours_lost).label("lost")
        )
        .where(
            hours.c.hour >= parts.first,
            hours.c.hour < parts.last,
            hours.c.kind == kind,
            *(hours.c[name] == value for name, value in scope.items() if value is not None),
        )
        .group_by(*by)
    )
    if parts.noted:
        wanted = wanted.where(hours.c.hour.not_in(parts.noted))
    return connection.execute(wanted).all()


def fold(connection: Connection, now: datetime, *, limit: int = 24) -> int:
    """Count noted hours that are over again from their rows; how many hours that were."""
    bulk.lock(connection, [FOLD_LOCK])
    found = connection.execute(
        select(hour_notes.c.id, hour_notes.c.hour)
        .where(hour_notes.c.hour < utc(now) - SETTLED - HOUR)
        .order_by(hour_notes.c.hour, hour_notes.c.id)
        .limit(_NOTES)
    ).all()
    wanted = sorted({row.hour for row in found})[:limit]
    chosen = set(wanted)
    taken = [row.id for row in found if row.hour in chosen]
    for start in range(0, len(taken), 500):
        connection.execute(delete(hour_notes).where(hour_notes.c.id.in_(taken[start : start + 500])))
    for hour in wanted:
        _count(connection, hour)
    return len(wanted)


def _count(connection: Connection, hour: datetime) -> None:
    connection.execute(delete(hours).where(hours.c.hour == hour))
    abstained = failures.c.abstained
    sources = (
        (jobs, JOBS, literal(""), literal("")),
        (
            failures,
            FAILURES,
            case((abstained, UNKNOWN), else_=failures.c.side),
            case((abstained, UNKNOWN), else_=failures.c.cause),
        ),
    )
    columns = ("hour", "kind", "cluster", "queue", "team", "status", "side", "cause", "jobs", "gpu_hours_lost")
    for table, kind, side, cause in sources:
        keys = (
            table.c.cluster,
            func.coalesce(table.c.queue, ""),
            func.coalesce(table.c.team, ""),
            table.c.status,
            side,
            cause,
        )
        counted = connection.execute(
            select(*(key.label(f"k{n}") for n, key in enumerate(keys)), func.count(), func.sum(table.c.gpu_hours_lost))
            .where(table.c.ended_at >= hour, table.c.ended_at < hour + HOUR, table.c.counted)
            .group_by(*(f"k{n}" for n in range(len(keys))))
        ).all()
        if counted:
            connection.execute(insert(hours), [dict(zip(columns, (hour, kind, *row), strict=True)) for row in counted])


class Rollups:
    """The counted hours, as a unit of work has them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def fold(self, now: datetime, *, limit: int = 24) -> int:
        """See `fold`."""
        return fold(self._connection, now, limit=limit)
