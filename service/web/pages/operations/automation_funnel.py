"""The funnel of automatic resubmission over a period, and what shadow mode would have brought."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.reports import intervals
from service.resubmissions.records import Rate
from service.resubmissions.repository.funnel import Funnel
from service.web import views
from service.web.services import Services

DEFAULT_RANGE = "28d"
MANY = 5_000  # above this many requests the funnel is cached


@dataclass(frozen=True, slots=True)
class ShadowEstimate:
    """What the requests of shadow mode would have brought, by the measured success of the same cause and plan.

    `measured`: the requests whose cause and plan have outcomes; `helped` of them is expected to help, between `low`
    and `high` (95 % intervals of each success rate, added). The expected share is the middle of the interval, so that
    a few outcomes that were all successes do not promise that every one succeeds. `gpu_hours_lost`: what the failures
    of all of them lost, the work after the last checkpoints. `rescued`: GPU-hours of work before the last checkpoints
    that the measured ones would have rescued, between `rescued_low` and `rescued_high`.
    """

    requests: int
    measured: int
    helped: float
    low: float
    high: float
    gpu_hours_lost: float
    rescued: float
    rescued_low: float
    rescued_high: float


@dataclass(frozen=True, slots=True)
class PeriodOfAutomation:
    """The funnel of a period. `stages`: name and number of requests, each stage a part of the one before."""

    funnel: Funnel
    stages: tuple[tuple[str, int], ...]
    shadow: ShadowEstimate


def read(services: Services, since: str, until: str | None) -> tuple[datetime, Funnel]:
    """The begin of a period, and its funnel. Large ones are cached: never part of a page's snapshot.

    Raises:
        InvalidInput: a time is invalid.
    """

    def count() -> tuple[datetime, Funnel]:
        begin, end = views.period(services, since, until)
        with services.store.reading() as reading:
            return begin, reading.funnel.read(begin, end if until else None)

    return services.funnels.get(
        (since, until), count, services.clock.monotonic(), cacheable=lambda made: made[1].advised >= MANY
    )


def of_period(found: Funnel, rates: Sequence[Rate]) -> PeriodOfAutomation:
    """The stages of a funnel, and what shadow mode left undone by the measured success rates."""
    stages = (
        ("advised", found.advised),
        ("opted_in", found.opted_in),
        ("requested", found.requested),
        ("done", found.done),
        ("succeeded", found.succeeded),
    )
    return PeriodOfAutomation(found, stages, estimate(found, rates))


def estimate(funnel: Funnel, rates: Sequence[Rate]) -> ShadowEstimate:
    """Apply the measured success rates of each cluster, cause and plan to its requests of shadow mode."""
    helped: Counter[tuple[str, str, str]] = Counter()
    failed: Counter[tuple[str, str, str]] = Counter()
    for rate in rates:
        measured_key = (rate.cluster, rate.cause, str(rate.plan))
        helped[measured_key] += rate.helped
        failed[measured_key] += rate.failed
    measured, value, low, high = 0, 0.0, 0.0, 0.0
    rescued = [0.0, 0.0, 0.0]
    for row in funnel.shadow:
        key = (row.cluster, row.cause, row.plan)
        share = intervals.share(helped[key], helped[key] + failed[key])
        if share is None:
            continue
        middle = (share.low + share.high) / 2
        measured += row.requests
        value += row.requests * middle
        low += row.requests * share.low
        high += row.requests * share.high
        rescued = [
            total + row.rescuable * part for total, part in zip(rescued, (middle, share.low, share.high), strict=True)
        ]
    return ShadowEstimate(
        sum(row.requests for row in funnel.shadow),
        measured,
        value,
        low,
        high,
        sum(row.gpu_hours_lost for row in funnel.shadow),
        *rescued,
    )
