"""Computes the figures of goodput and reliability from counts. Pure.

Failure rates have 95 % intervals, which the mean time to failure (MTTF) follows from. The number of failures is a
Poisson number whose variance is `dispersion` times as large (quasi-Poisson: McCullagh and Nelder 1989, section 4.5),
because failures come in clusters. Intervals are exact ones of the gamma distribution (Garwood 1936), as in Kokolis et
al. 2024.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from service.contracts.event import FAILURE_STATUSES
from service.goodput.records import (
    GPUS_PER_NODE,
    AttemptSum,
    Estimate,
    Goodput,
    GoodputCounts,
    Interruption,
    LossByCause,
    Projection,
    SizeRow,
    TrendPart,
)
from service.statistics.records import UNKNOWN, Scope

_ROUNDING = 1e-5  # share of the GPU-hours held
_TAIL = 0.025
_LEAST_PARTS = 7  # with fewer days the dispersion is not estimated


def dispersion(counts: Sequence[int], exposures: Sequence[float]) -> float:
    """How much larger than Poisson's the variance of counts is, at least 1 (Pearson's statistic per degree of freedom).

    Args:
        counts: failures of each day.
        exposures: node-days of each day; days without any are left out.
    """
    pairs = [(count, exposure) for count, exposure in zip(counts, exposures, strict=True) if exposure > 0]
    total = sum(exposure for _, exposure in pairs)
    rate = sum(count for count, _ in pairs) / total if total else 0.0
    if len(pairs) < _LEAST_PARTS or rate == 0:
        return 1.0
    pearson = sum((count - rate * exposure) ** 2 / (rate * exposure) for count, exposure in pairs)
    return max(pearson / (len(pairs) - 1), 1.0)


def failure_rate(failures: int, exposure: float, spread: float = 1.0) -> Estimate | None:
    """Failures per unit of exposure; None without exposure."""
    if exposure <= 0:
        return None
    from scipy.special import gammaincinv  # noqa: PLC0415 - a tenth of the time of a start, and few commands ask for it

    seen = failures / spread
    low = float(gammaincinv(seen, _TAIL)) if failures else 0.0
    high = float(gammaincinv(seen + 1, 1 - _TAIL))
    return Estimate(failures / exposure, low * spread / exposure, high * spread / exposure)


def mean_time(found: Estimate | None, factor: float = 1.0) -> Estimate | None:
    """The mean time between failures at `factor` times a rate; None without a failure, because there is no estimate."""
    if found is None or found.value <= 0 or factor <= 0 or found.high is None:
        return None
    return Estimate(
        1 / (found.value * factor),
        1 / (found.high * factor),
        1 / (found.low * factor) if found.low > 0 else None,
    )


HARDWARE = "hardware"
INTERRUPTING = (HARDWARE, "system")
PROJECTED = (1_024, 4_096, 16_384, 131_072)  # GPUs, as in Kokolis et al. 2024
_PER = 1_000
_HOURS = 24


@dataclass(slots=True)
class _Sum:
    attempts: int = 0
    gpu_hours: float = 0.0


def _delivered(held: float, lost: float) -> float:
    """The GPU-hours that were not lost; those of an attempt are stored rounded, so that less than the error is 0."""
    return held - lost if held - lost > _ROUNDING * held else 0.0


def compute(counts: GoodputCounts, scope: Scope) -> Goodput:
    """The figures of the whole period that the counts cover."""
    rows = counts.attempts
    held = sum(row.held for row in rows)
    failed = [row for row in rows if row.status in FAILURE_STATUSES]
    lost = _lost(failed)
    preempted = _lost(row for row in rows if row.status == "preempted")
    cancelled = _lost(row for row in rows if row.status == "cancelled")
    delivered = _delivered(held, lost + preempted + cancelled)
    hardware = [row for row in failed if row.side == HARDWARE]
    failures, node_days = _number(hardware), sum(row.node_days for row in rows)
    spread = _dispersion(counts, hardware)
    per_day = failure_rate(failures, node_days, spread)
    runs = counts.runs
    lineages = sum(runs.restarts.values())
    restarted = sum(times * many for times, many in runs.restarts.items())
    return Goodput(
        since=counts.bounds[0],
        until=counts.bounds[-1],
        scope=scope,
        attempts=_number(rows),
        unmeasured=_number(rows) - sum(row.measured for row in rows),
        held=held,
        delivered=delivered,
        lost=lost,
        lost_to_preemption=preempted,
        lost_to_cancellation=cancelled,
        goodput=_share(delivered, held),
        share_lost=_share(lost, held),
        lost_by_cause=_causes(failed, held),
        lost_by_category={"WASTED_PROGRESS_FROM_DISRUPTION": lost + preempted, "OTHER": cancelled},
        ettr=_share(runs.productive, runs.available),
        ettr_long=runs.long_mean,
        long_runs=runs.long_count,
        lineages=lineages,
        restarts=runs.restarts,
        restarts_mean=_share(restarted, lineages),
        restarts_most=max(runs.restarts, default=0),
        times=counts.times,
        hardware_failures=failures,
        node_days=node_days,
        failures_per_1000_node_days=failure_rate(failures, node_days / _PER, spread),
        dispersion=spread,
        sizes=_sizes(rows, hardware, per_day),
        projections=tuple(
            Projection(gpus, found)
            for gpus in PROJECTED
            if (found := mean_time(per_day, gpus / GPUS_PER_NODE / _HOURS)) is not None
        ),
        interruptions=_interruptions(failed),
        incidents=counts.incidents,
        trend=trend(counts.bounds, counts.attempts),
    )


def _number(rows: Iterable[AttemptSum]) -> int:
    return sum(row.attempts for row in rows)


def _lost(rows: Iterable[AttemptSum]) -> float:
    return sum(row.lost for row in rows)


def _share(value: float, of: float) -> float | None:
    return value / of if of > 0 else None


def _dispersion(counts: GoodputCounts, hardware: Sequence[AttemptSum]) -> float:
    parts = len(counts.bounds) - 1
    failures, exposures = [0] * parts, [0.0] * parts
    for row in hardware:
        failures[row.part] += row.attempts
    for row in counts.attempts:
        exposures[row.part] += row.node_days
    return dispersion(failures, exposures)


def _by_cause(rows: Iterable[AttemptSum]) -> list[tuple[str, str, _Sum]]:
    found: defaultdict[tuple[str, str], _Sum] = defaultdict(_Sum)
    for row in rows:
        one = found[row.side or UNKNOWN, row.cause or UNKNOWN]
        one.attempts += row.attempts
        one.gpu_hours += row.lost
    return [(side, cause, one) for (side, cause), one in found.items()]


def _causes(failed: Iterable[AttemptSum], held: float) -> tuple[LossByCause, ...]:
    found = sorted(_by_cause(failed), key=lambda one: (-one[2].gpu_hours, -one[2].attempts, one[:2]))
    return tuple(
        LossByCause(side, cause, one.attempts, one.gpu_hours, _share(one.gpu_hours, held) or 0.0)
        for side, cause, one in found
    )


def _interruptions(failed: Iterable[AttemptSum]) -> tuple[Interruption, ...]:
    found = [one for one in _by_cause(failed) if one[0] in INTERRUPTING]
    total = sum(one.attempts for _, _, one in found)
    return tuple(
        Interruption(side, cause, one.attempts, one.attempts / total, one.gpu_hours)
        for side, cause, one in sorted(found, key=lambda one: (-one[2].attempts, one[:2]))
    )


def _sizes(rows: Sequence[AttemptSum], hardware: Sequence[AttemptSum], per_day: Estimate | None) -> tuple[SizeRow, ...]:
    made = []
    for gpus in sorted({row.size for row in rows if row.size}):
        same = [row for row in rows if row.size == gpus]
        failures = _number(row for row in hardware if row.size == gpus)
        hours = sum(row.job_hours for row in same)
        days = sum(row.node_days for row in same)
        nodes = days * _HOURS / hours if hours > 0 else 0.0
        made.append(
            SizeRow(
                gpus,
                _number(same),
                hours,
                days,
                failures,
                mean_time(failure_rate(failures, hours)),
                mean_time(per_day, nodes / _HOURS),
            )
        )
    return tuple(made)


def trend(bounds: Sequence[datetime], attempts: Iterable[AttemptSum]) -> tuple[TrendPart, ...]:
    """The figures of each part of a period."""
    made = []
    together = list(attempts)
    for number, (since, until) in enumerate(pairwise(bounds)):
        rows = [row for row in together if row.part == number]
        by_side: defaultdict[str, float] = defaultdict(float)
        for row in rows:
            if row.status in FAILURE_STATUSES:
                by_side[row.side or UNKNOWN] += row.lost
        held = sum(row.held for row in rows)
        preempted = _lost(row for row in rows if row.status == "preempted")
        cancelled = _lost(row for row in rows if row.status == "cancelled")
        delivered = _delivered(held, sum(by_side.values()) + preempted + cancelled)
        made.append(
            TrendPart(since, until, held, delivered, dict(by_side), preempted, cancelled, _share(delivered, held))
        )
    return tuple(made)
