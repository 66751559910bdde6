"""Goodput and reliability figures, shared by page and API."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from service.db.session import ReadSession
from service.errors import FieldError, InvalidInput
from service.goodput import figures
from service.goodput.records import ComparedGoodput, Goodput, TrendPart
from service.statistics.records import Scope, Stats
from service.times import MIN_TIME
from service.web.services import Services
from service.web.url_times import instant
from service.web.views import default_since

DEFAULT_RANGE = "28d"
LARGE = 20_000  # attempts of a period; above it, the figures take too long for a page and are cached
SLOW_S = 0.2  # figures that take longer are cached too: the attempts of one cluster among those of many
SMALL = 5_000  # ended jobs of both periods; above it, a page does not wait for their goodput
MOST_DAYS = 92  # longer periods are divided into weeks
LONGEST = timedelta(days=731)


@dataclass(frozen=True, slots=True)
class Cost:
    """GPU-hours lost in money."""

    currency: str
    price: float
    lost: float
    lost_to_preemption: float
    by_cause: Mapping[str, float]


def goodput(services: Services, since: str | None, until: str | None, scope: Scope) -> ComparedGoodput:
    """The figures of the attempts that ended in [since, until), by default 28 days until now, and the period before.

    All of them come from one snapshot of the database. Those that take long come from a cache, so they are never
    part of a page's snapshot.

    Raises:
        InvalidInput: a time is invalid, or the period is empty or longer than two years.
    """
    now, zone = services.clock.now(), services.zone
    end = now if until is None else instant(until, "until", now, zone)
    begin = instant(since or default_since(services, until, DEFAULT_RANGE), "since", now, zone)
    if not timedelta(0) < end - begin <= LONGEST:
        expected = "a time before until, at most two years earlier"
        raise InvalidInput(f"since: expected {expected}", (FieldError("since", expected, since),))

    def compute() -> ComparedGoodput:
        with services.store.reading() as reading:
            found = figures.compute(reading.goodput.counts(parts(begin, end, zone), scope), scope)
            return ComparedGoodput(found, *_with_before(reading, found.since, found.until, found.scope))

    start = services.clock.monotonic()
    return services.goodput_figures.get(
        (since, until, scope),
        compute,
        start,
        cacheable=lambda made: made.figures.attempts >= LARGE or services.clock.monotonic() - start > SLOW_S,
    )


def summary(
    services: Services, stats: Stats, before: Stats | None, scope: Scope, key: Hashable
) -> tuple[TrendPart, TrendPart] | None:
    """The GPU-hours of the period of equal length before the one of `stats`, and those of its own.

    Those of large periods are computed in the background, and are None until then.

    Args:
        services: the services of the page, with its snapshot.
        stats: the figures of the period.
        before: those of the period before.
        scope: which jobs count.
        key: what the caller asked for, as a key of the cache.
    """
    if stats.finished + (before.finished if before else 0) < SMALL:
        with services.reading() as reading:
            return _with_before(reading, stats.since, stats.until, scope)

    def compute() -> tuple[TrendPart, TrendPart]:
        with services.store.reading() as reading:
            return _with_before(reading, stats.since, stats.until, scope)

    return services.goodput_summaries.get_computed(key, compute, services.clock.monotonic())


def _with_before(reading: ReadSession, since: datetime, until: datetime, scope: Scope) -> tuple[TrendPart, TrendPart]:
    bounds = (_earlier(since, until), since, until)
    before, now = figures.trend(bounds, reading.goodput.attempts(bounds, scope))
    return before, now


def _earlier(since: datetime, until: datetime) -> datetime:
    """The begin of the period of equal length before [since, until), or the first time there is."""
    try:
        return since - (until - since)
    except OverflowError:
        return MIN_TIME


def step(since: datetime, until: datetime) -> timedelta:
    """The length of the parts of a period: a day, or a week if the period is long."""
    return timedelta(days=1 if until - since <= timedelta(days=MOST_DAYS) else 7)


def parts(since: datetime, until: datetime, zone: ZoneInfo) -> tuple[datetime, ...]:
    """The limits of the days of a period in a zone, or of its weeks if it is long; the first and last may be short."""
    length = step(since, until)
    bounds = [since]
    try:
        day = since.astimezone(zone).date()
        if length > timedelta(days=1):
            day -= timedelta(days=day.weekday())
        while (midnight := datetime.combine(day := day + length, time(), zone).astimezone(UTC)) < until:
            bounds.append(midnight)
    except OverflowError:  # at the first or last day that a date can have
        pass
    return (*bounds, until)


def cost(services: Services, found: Goodput) -> Cost | None:
    """The price of the lost GPU-hours; None if no price is set."""
    price = services.gpu_hour_price
    if price is None:
        return None
    return Cost(
        services.gpu_hour_currency,
        price,
        found.lost * price,
        found.lost_to_preemption * price,
        {one.cause: one.gpu_hours * price for one in found.lost_by_cause},
    )
