"""Records of goodput and reliability figures: plain frozen dataclasses, no SQL.

`definitions.toml` defines each figure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from service.statistics.records import Scope

GPUS_PER_NODE = 8  # where an event names no nodes, as in Kokolis et al. 2024, section III


@dataclass(frozen=True, slots=True)
class AttemptSum:
    """Sums over the attempts that ended in one part of a period with equal status, side, cause and size.

    `part` numbers the parts of the period; `side` and `cause` are None for attempts without a verdict and "unknown" for
    undecided verdicts. `size` is the number of GPUs, rounded up to a power of two; 0: unknown. `measured` counts
    attempts with a known size and start; only these have GPU-hours, job-hours and node-days.
    """

    part: int
    status: str
    side: str | None
    cause: str | None
    size: int
    attempts: int
    measured: int
    held: float
    lost: float
    job_hours: float
    node_days: float


@dataclass(frozen=True, slots=True)
class RunSums:
    """Sums over lineages (a job and its resubmissions) by the attempts that ended in a period.

    `restarts`: number of lineages by number of restarts. `productive` and `available` are GPU-hours of the lineages
    with a known size; the same with `long_` of lineages that ran for a day or more: mean of their ratios and number.
    """

    restarts: Mapping[int, int]
    productive: float
    available: float
    long_mean: float | None
    long_count: int


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Number of observations, their median and 95th percentile in seconds (nearest rank); None without any."""

    count: int = 0
    median: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class IncidentTimes:
    """Incidents opened in a period, how many of them are closed, and the time from opening to closing."""

    opened: int
    closed: int
    to_close: Quantiles


@dataclass(frozen=True, slots=True)
class Times:
    """Times in seconds.

    `to_restart`: from the end of a failed attempt to the start of the next attempt of its lineage. `to_verdict`: from
    the end of a failed attempt to its first verdict. `hang`: from the last progress in the log of a hang to its end.
    """

    to_restart: Quantiles
    to_verdict: Quantiles
    hang: Quantiles


@dataclass(frozen=True, slots=True)
class GoodputCounts:
    """All that the figures are computed from. `bounds` are the limits of the parts of the period, in order."""

    bounds: tuple[datetime, ...]
    attempts: tuple[AttemptSum, ...]
    runs: RunSums
    times: Times
    incidents: IncidentTimes


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval. `high` is None where there is no upper limit."""

    value: float
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class LossByCause:
    """GPU-hours lost to failures of one cause, and the category of the ml-goodput-measurement library."""

    side: str
    cause: str
    attempts: int
    gpu_hours: float
    share_of_held: float


@dataclass(frozen=True, slots=True)
class Interruption:
    """One row of the interruption table: a hardware or system cause and its share of all interruptions."""

    side: str
    cause: str
    count: int
    share: float
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class SizeRow:
    """Jobs of more than half of and at most `gpus` GPUs: their hours, hardware failures and MTTF in hours."""

    gpus: int
    attempts: int
    job_hours: float
    node_days: float
    failures: int
    mttf_hours: Estimate | None
    fitted_hours: Estimate | None


@dataclass(frozen=True, slots=True)
class Projection:
    """The MTTF in hours of a job of this size, from the fitted failure rate."""

    gpus: int
    mttf_hours: Estimate


@dataclass(frozen=True, slots=True)
class TrendPart:
    """One part of the period: GPU-hours held, delivered, and lost by side, preemption and cancellation."""

    since: datetime
    until: datetime
    held: float
    delivered: float
    lost_by_side: Mapping[str, float]
    lost_to_preemption: float
    lost_to_cancellation: float
    goodput: float | None


@dataclass(frozen=True, slots=True)
class Goodput:
    """The figures of a period and scope. GPU-hours, seconds for times, hours for MTTF; shares from 0 to 1."""

    since: datetime
    until: datetime
    scope: Scope
    attempts: int
    unmeasured: int
    held: float
    delivered: float
    lost: float
    lost_to_preemption: float
    lost_to_cancellation: float
    goodput: float | None
    share_lost: float | None
    lost_by_cause: tuple[LossByCause, ...]
    lost_by_category: Mapping[str, float]
    ettr: float | None
    ettr_long: float | None
    long_runs: int
    lineages: int
    restarts: Mapping[int, int]
    restarts_mean: float | None
    restarts_most: int
    times: Times
    hardware_failures: int
    node_days: float
    failures_per_1000_node_days: Estimate | None
    dispersion: float
    sizes: tuple[SizeRow, ...]
    projections: tuple[Projection, ...]
    interruptions: tuple[Interruption, ...]
    incidents: IncidentTimes
    trend: tuple[TrendPart, ...]


@dataclass(frozen=True, slots=True)
class ComparedGoodput:
    """The figures of a period; the GPU-hours of the period of equal length before it, and its own (`now`)."""

    figures: Goodput
    before: TrendPart
    now: TrendPart
