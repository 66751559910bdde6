"""Records of statistics: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from classifiers import taxonomy

UNKNOWN = "unknown"  # stands for side and cause of undecided verdicts
SIDES = (*taxonomy.SIDES, UNKNOWN)  # in the order in which charts stack them, from the bottom up
# What `Stats` holds: counts by status, also shares by side and cause, also the hourly series. Each takes more queries.
StatsDetail = Literal["status", "shares", "hours"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The cluster, team and queue of the jobs that count; None: all."""

    cluster: str | None = None
    team: str | None = None
    queue: str | None = None

    def given(self) -> Mapping[str, str]:
        """The names that are set, by column."""
        names = {"cluster": self.cluster, "team": self.team, "queue": self.queue}
        return {name: value for name, value in names.items() if value is not None}


ALL_JOBS = Scope()


@dataclass(frozen=True, slots=True)
class Share:
    """One row of a breakdown: `key` is a side or a cause."""

    key: str
    failures: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class HourCount:
    """One hour of the series; `hour` is its beginning."""

    hour: datetime
    finished: int
    failed: int
    by_side: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PeriodCount:
    """Jobs that ended in [begin, end) of a series, of these the failed ones, and the failed ones by side.

    `gpu_hours_lost` is by side as well. A failed job without a conclusive verdict counts under "unknown". The first
    and the last part of a series may be shorter than the others.
    """

    begin: datetime
    end: datetime
    finished: int
    failed: int
    by_side: Mapping[str, int]
    gpu_hours_lost: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts over jobs that ended in [since, until).

    `finished` = succeeded + failed is the rate's denominator, `failed` its numerator (contract, section 2);
    `preempted` and `cancelled` are counted separately. `rate` is None if nothing finished. Shares are of the failed
    ones, most first; a failed job without a verdict is under "unknown". Shares and hours are empty where they were read
    with less detail.
    """

    since: datetime
    until: datetime
    finished: int
    succeeded: int
    failed: int
    preempted: int
    cancelled: int
    rate: float | None
    gpu_hours_lost: float
    by_side: tuple[Share, ...]
    by_cause: tuple[Share, ...]
    by_status: Mapping[str, int]
    hours: tuple[HourCount, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """Health of the pipeline.

    Dead letters received and failures ended since `since`; open, conflicting and pending items, and messages that wait
    in the outbox, are counted as of now, up to 10,001, which stands for more than 10,000. `abstained_share` is None
    where no failure ended since.
    """

    since: datetime
    dead_letters: int
    dead_letters_open: int
    diagnosed: int
    abstained: int
    abstained_share: float | None
    conflicts: int
    pending_logs: int
    outbox_waiting: int
