"""Hourly roll-ups: pages over long periods read a few rows for each hour instead of all jobs.

Every writer of rows marks the hours they ended in as stale (appended, so that writers do not contend for a row). In
the background a stale hour that is over is recounted from its rows, and its day is summed from its hours: in total, and
for each cluster, queue and team. A stale hour is read from the rows themselves, and its day from its other
hours, so that the figures always equal those of the rows. A process keeps the counts that it has read, for as long as
no hour of their days is counted again (see versions.py).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Executable,
    Row,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    delete,
    false,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    type_coerce,
    union_all,
)

from service.failures.tables import failures
from service.jobs.tables import jobs
from service.sql import bulk
from service.sql.bulk import chunks
from service.sql.reader import Reader
from service.sql.types import UtcDateTime, clean, utc
from service.statistics.count_cache import CountCache
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository import sums, versions
from service.statistics.repository.sums import FAILURES, JOBS
from service.statistics.tables import day_counts, hour_counts, stale_hours
from service.times import EPOCH

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
SHORT = timedelta(hours=3)  # for shorter periods the rows themselves are read
UNCACHED = timedelta(
    hours=48
)  # for shorter periods too, where counts are not kept: reading counts takes more statements
MOST_TIMES = 3_000  # hours or days of a question that sums may answer; their list is part of the statement
MANY = 48  # if a period has more stale hours, the rows are read
SETTLED = timedelta(minutes=30)  # after the end of an hour: until then late rows arrive
FOLD_LOCK = 0x6661756C_686F7572
SCOPES = ("cluster", "queue", "team")
_Spans = tuple[tuple[datetime, datetime], ...]
_NOTES = 20_000  # read at a time


@dataclass(frozen=True, slots=True)
class PeriodParts:
    """How to read a period: `ranges` from the rows, the whole hours in [first, last) except `noted` from roll-ups.

    Of these, the whole days in [first_day, last_day) except `broken` may be read from the sums of days. `summed` keeps
    which hours and days have sums over all jobs, by table and spans, as several questions about the period ask for it.
    `cache` has the counts that were read before, of `version`; None: they are read from the database.
    """

    ranges: tuple[tuple[datetime, datetime], ...]
    first: datetime
    last: datetime
    noted: tuple[datetime, ...]
    summed: dict[tuple[str, _Spans], set[datetime]] = field(default_factory=dict, compare=False)
    version: int | None = None
    cache: CountCache | None = field(default=None, compare=False)

    @property
    def first_day(self) -> datetime:
        """The start of the first whole day."""
        return -(-(self.first - EPOCH) // DAY) * DAY + EPOCH

    @property
    def last_day(self) -> datetime:
        """The end of the last whole day; not before `first_day`."""
        return max(start_of_day(self.last), self.first_day)

    @property
    def broken(self) -> tuple[datetime, ...]:
        """Days with stale hours."""
        return tuple(sorted({start_of_day(hour) for hour in self.noted}))


def mark_stale(connection: Connection, ended: Iterable[datetime]) -> None:
    """Mark the hours of these times as stale: their counts are outdated."""
    wanted = sorted({floor(at) for at in ended})
    bulk.append(connection, stale_hours, ("hour",), [(hour,) for hour in wanted])


def floor(at: datetime) -> datetime:
    """The start of the hour."""
    return utc(at).replace(minute=0, second=0, microsecond=0)


def start_of_day(at: datetime) -> datetime:
    """The start of the day (UTC)."""
    return (at - EPOCH) // DAY * DAY + EPOCH


def split(connection: Connection, since: datetime, until: datetime, cache: CountCache | None = None) -> PeriodParts:
    """Split a period into parts; `kept`: where the counts of its hours are kept, for a session that does not write."""
    whole = PeriodParts(((since, until),), until, until, ())
    if until - since <= (UNCACHED if cache is None else SHORT):
        return whole
    first, last = -(-(since - EPOCH) // HOUR) * HOUR + EPOCH, floor(until)
    noted, version = _state(connection, first, last)
    cache = None if version is None else cache
    if len(noted) > MANY or (cache is None and until - since <= UNCACHED):
        return whole
    ranges: list[tuple[datetime, datetime]] = []
    for begin, end in ((since, first), *((hour, hour + HOUR) for hour in noted), (last, until)):
        if begin >= end:
            continue
        if ranges and ranges[-1][1] == begin:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((begin, end))
    return PeriodParts(tuple(ranges), first, last, noted, version=version, cache=cache)


def _state(connection: Connection, first: datetime, last: datetime) -> tuple[tuple[datetime, ...], int | None]:
    """The stale hours in [first, last), at most one more than `MANY`, and the version of the others.

    The version changes whenever one of them is counted again; None: a process of an earlier release counted some.
    """
    number = -(-(last - EPOCH) // DAY) - (first - EPOCH) // DAY
    found = connection.execute(_states(), {"day": start_of_day(first), "first": first, "last": last}).all()
    version = next((row.greatest for row in found if row.number == number), None)
    return tuple(sorted(row.hour for row in found if row.number is None)), version


@cache
def _states() -> Executable:
    """The query of `_state`, made once: the stale hours, and the greatest version and the number of versions."""
    day, first, last = (bindparam(name, type_=UtcDateTime) for name in ("day", "first", "last"))
    within = (stale_hours.c.hour >= first, stale_hours.c.hour < last)
    stale = select(stale_hours.c.hour).where(*within).distinct().order_by(stale_hours.c.hour).limit(MANY + 1).subquery()
    of_days = versions.of_days(day, last).subquery()
    no_number = literal(None, BigInteger)
    return union_all(
        select(stale.c.hour, no_number.label("greatest"), no_number.label("number")),
        select(literal(None, UtcDateTime), of_days.c.greatest, of_days.c.number),
    )


def rows(
    connection: Connection,
    parts: PeriodParts,
    kind: str,
    scope: Scope,
    *by: str,
    step: timedelta | None = None,
) -> Iterable[Row[Any]]:
    """The counted hours of a period, grouped by `by`: these, `jobs` and `lost`; a group may occur more than once.

    With `step` the groups have a time `at` as well: the beginning of the hour, day or week that was counted, or of a
    step that divides the day. Sums of days are read only if the step is at least a day, and are added up to weeks (from
    Monday) if it is one.
    """
    if parts.first >= parts.last:
        return ()
    if parts.cache is None:
        return _read_rows(connection, parts, kind, scope, by, step)
    key = (parts.first, parts.last, parts.noted, parts.version, kind, scope, by, step)
    return parts.cache.get(key, lambda: _read_rows(connection, parts, kind, scope, by, step))


def _read_rows(
    connection: Connection, parts: PeriodParts, kind: str, scope: Scope, by: Sequence[str], step: timedelta | None
) -> Iterator[Row[Any]]:
    narrowed = {name: clean(value) for name, value in scope.given().items()}
    spans: _Spans = ((parts.first, parts.last),)
    if len(narrowed) <= 1 and parts.first_day < parts.last_day and (step is None or step >= DAY):
        name, value = next(iter(narrowed.items()), ("", ""))
        of_scope = _Counts(
            day_counts, day_counts.c.day, DAY, (day_counts.c.scope == name, day_counts.c.name == value), not narrowed
        )
        at = None if step is None else _day_or_week(connection, step)
        yield from _read(connection, of_scope, parts, ((parts.first_day, parts.last_day),), kind, by, at)
        broken = [one for one in parts.broken if parts.first_day <= one < parts.last_day]
        spans = ((parts.first, parts.first_day), *((day, day + DAY) for day in broken), (parts.last_day, parts.last))
    # SQLite would look up the cluster in every hour that is stored instead of reading the hours of the period.
    postgres = bulk.is_postgres(connection)
    in_scope = tuple(
        (hour_counts.c[name] if postgres else literal_column(f"+hours.{name}")) == value
        for name, value in narrowed.items()
    )
    counts = _Counts(hour_counts, hour_counts.c.hour, HOUR, in_scope, not narrowed)
    yield from _read(
        connection, counts, parts, spans, kind, by, None if step is None else _hour_or_hours(connection, step)
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    """The rows of a table of counts in a scope; `time` is its hour or day. `of_all`: the scope is all jobs."""

    table: Table
    time: Column[datetime]
    unit: timedelta
    in_scope: tuple[ColumnElement[bool], ...]
    of_all: bool

    def times(self, spans: _Spans, without: Collection[datetime]) -> list[datetime] | None:
        """The hours or days of these spans; None if they are too many."""
        numbers = [max((end - begin) // self.unit, 0) for begin, end in spans]
        if sum(numbers) > MOST_TIMES:
            return None
        each = (begin + n * self.unit for (begin, _), many in zip(spans, numbers, strict=True) for n in range(many))
        left_out = frozenset(without)
        return [one for one in each if one not in left_out]

    def inside(self, spans: _Spans, without: Collection[datetime]) -> ColumnElement[bool]:
        """The condition that a row is of these hours or days."""
        found = or_(*(and_(self.time >= begin, self.time < end) for begin, end in spans if begin < end), false())
        return and_(found, self.time.not_in(without)) if without else found


def _read(
    connection: Connection,
    counts: _Counts,
    parts: PeriodParts,
    spans: _Spans,
    kind: str,
    by: Sequence[str],
    at: ColumnElement[datetime] | None,
) -> Iterator[Row[Any]]:
    """The counts of the hours or days of these spans: sums over all jobs where these answer the question."""
    table, without = counts.table, parts.broken if counts.table is day_counts else parts.noted
    of_counts = _summed(table, by, at).where(*counts.in_scope, table.c.kind == kind)
    conditions = sums.conditions(table, kind, by) if counts.of_all else None
    times = counts.times(spans, without)
    if conditions is None or times is None:
        yield from connection.execute(of_counts.where(counts.inside(spans, without)))
        return
    near = (
        [counts.inside(spans, without)] if table is day_counts else [sums.one_of(counts.time, p) for p in chunks(times)]
    )
    have = parts.summed.get((table.name, spans))
    if have is None:
        have = set().union(*(sums.times(connection, table, condition) for condition in near))
        parts.summed[table.name, spans] = have
    of_sums = _summed(table, by, at).where(*conditions)
    for condition in near:
        yield from connection.execute(of_sums.where(condition))
    for part in chunks([one for one in times if one not in have]):
        yield from connection.execute(of_counts.where(sums.one_of(counts.time, part)))


def _hour_or_hours(connection: Connection, step: timedelta) -> ColumnElement[datetime]:
    """The hour of a row of `hours`, or the beginning of some hours where these divide the day."""
    if step <= HOUR or DAY % step:
        return hour_counts.c.hour
    seconds = int(step.total_seconds())
    if bulk.is_postgres(connection):
        return func.to_timestamp(func.floor(func.extract("epoch", hour_counts.c.hour) / seconds) * seconds)
    begin = cast(func.strftime("%s", hour_counts.c.hour), BigInteger) // seconds * seconds
    return type_coerce(func.datetime(begin, "unixepoch"), UtcDateTime)


def _day_or_week(connection: Connection, step: timedelta) -> ColumnElement[datetime]:
    """The beginning of the day or of the week of a row of `days`."""
    if step < WEEK:
        return day_counts.c.day
    if bulk.is_postgres(connection):
        return func.date_trunc("week", day_counts.c.day, "UTC")
    return type_coerce(
        func.datetime(day_counts.c.day, "weekday 0", "-6 days"), UtcDateTime
    )  # back from the next Sunday


def _summed(table: Table, by: Sequence[str], at: ColumnElement[datetime] | None = None) -> Select[Any]:
    keys = [table.c[name] for name in by]
    times: list[ColumnElement[Any]] = [] if at is None else [at.label("at")]
    jobs_sum = cast(func.sum(table.c.jobs), BigInteger).label("jobs")
    lost = func.sum(table.c.gpu_hours_lost).label("lost")
    wanted: Select[Any] = select(*times, *keys, jobs_sum, lost)
    return wanted.group_by(*([] if at is None else [at]), *keys)


def _count_hour(connection: Connection, hour: datetime) -> None:
    connection.execute(delete(hour_counts).where(hour_counts.c.hour == hour))
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
            connection.execute(
                insert(hour_counts), [dict(zip(columns, (hour, kind, *row), strict=True)) for row in counted]
            )
    sums.write_hour(connection, hour)


def _sum_day(connection: Connection, day: datetime) -> None:
    connection.execute(delete(day_counts).where(day_counts.c.day == day))
    keys = (hour_counts.c.kind, hour_counts.c.status, hour_counts.c.side, hour_counts.c.cause)
    for scope in ("", *SCOPES):
        own = hour_counts.c[scope] if scope else literal("")
        connection.execute(
            insert(day_counts).from_select(
                ("scope", "name", "day", "kind", "status", "side", "cause", "jobs", "gpu_hours_lost"),
                select(
                    literal(scope),
                    own.label("own"),
                    literal(day, UtcDateTime),
                    *keys,
                    cast(func.sum(hour_counts.c.jobs), BigInteger),
                    func.sum(hour_counts.c.gpu_hours_lost),
                )
                .where(
                    hour_counts.c.hour >= day, hour_counts.c.hour < day + DAY, hour_counts.c.kind.in_((JOBS, FAILURES))
                )
                .group_by(*((own,) if scope else ()), *keys),
            )
        )
    sums.write_day(connection, day)


class RollupRepository(Reader):
    """Writes hourly counts."""

    def recount(self, now: datetime, *, limit: int = 24) -> int:
        """Recount stale hours that are over from their rows; returns the number of hours."""
        connection = self._connection
        bulk.lock(connection, [FOLD_LOCK])
        found = connection.execute(
            select(stale_hours.c.id, stale_hours.c.hour)
            .where(stale_hours.c.hour < utc(now) - SETTLED - HOUR)
            .order_by(stale_hours.c.hour, stale_hours.c.id)
            .limit(_NOTES)
        ).all()
        wanted = sorted({row.hour for row in found})[:limit]
        chosen = set(wanted)
        taken = [row.id for row in found if row.hour in chosen]
        for part in chunks(taken):
            connection.execute(delete(stale_hours).where(stale_hours.c.id.in_(part)))
        for hour in wanted:
            _count_hour(connection, hour)
        counted = sorted({start_of_day(hour) for hour in wanted})
        for day in counted:
            _sum_day(connection, day)
        versions.write(connection, counted)
        versions.complete(connection, start_of_day(utc(now)))
        return len(wanted)
