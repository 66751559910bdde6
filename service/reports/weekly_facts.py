"""The facts that a weekly report is built from: figures as read from the database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from service.goodput.records import Goodput, TrendPart
from service.reports.audit_accuracy import AuditAccuracy
from service.reports.document import RecommendedAction
from service.reports.records import EVERYTHING, Amount, Price
from service.statistics.records import Scope


@dataclass(frozen=True, slots=True)
class Cluster:
    """The failures of one group and side on one day of a week: `day` 0 is Monday in the report's time zone.

    `jobs` counts jobs whose last attempt of the week failed then; `attempts` and `gpu_hours` are of all failed
    attempts of the day. `group` is None for failures without a verdict.
    """

    group: str | None
    side: str
    day: int
    jobs: int
    attempts: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class JobCounts:
    """One week's jobs by their last attempt in the week. `lineages` counts a job and its resubmissions as one.

    `by_day`: finished jobs of each of the seven days, by the end of their last attempt.
    """

    finished: int = 0
    failed: int = 0
    lineages: int = 0
    by_day: tuple[int, ...] = (0,) * 7
    clusters: tuple[Cluster, ...] = ()


@dataclass(frozen=True, slots=True)
class WeekCounts:
    """One week's counts of attempts. `finished` = succeeded + failed; `by_side` has "unknown" too.

    `amounts`: the GPU-hours that each failed attempt lost; empty where they are too many to read one by one.
    `jobs` counts jobs; it is empty for weeks that are not compared.
    """

    name: str
    finished: int
    failed: int
    lost: Amount
    by_side: Mapping[str, Amount] = field(default_factory=dict)
    amounts: tuple[float, ...] = ()
    jobs: JobCounts = field(default_factory=JobCounts)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group in the week. `first_seen` and `last_before` are over all time; the latter None: new.

    `merged`: further fingerprints that people merged into it. `resolved`: a person resolved it, and it did
    not fail since; `returned`: it did.
    """

    fingerprint: str
    failure_id: int
    headline: str
    side: str
    cause: str
    amount: Amount
    users: int
    first_seen: datetime
    last_before: datetime | None
    merged: tuple[str, ...] = ()
    resolved: bool = False
    returned: bool = False


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A suspect node: its failure rate relative to the fleet's, with interval, and its exposure in hours.

    `gpu_hours`: lost in the week by failures attributed to it.
    """

    cluster: str
    node: str
    ratio: float
    low: float
    high: float
    failures: float
    exposure_h: float
    gpu_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class CostCell:
    """Failures that share a group, a suspect node (with its cluster) and whether the environment differed."""

    group: str
    cluster: str
    node: str | None
    environment: bool
    failures: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """An incident that was open in the week."""

    id: int
    title: str
    opened_at: datetime
    closed_at: datetime | None
    jobs: int


@dataclass(frozen=True, slots=True)
class AutomationFacts:
    """What automatic resubmission did: requests by state, outcomes by kind, and the GPU-hours behind them.

    `rescued_gpu_hours` is defined in `service.resubmissions.repository.rescued`; `wasted_gpu_hours` is what the
    resubmitted jobs that failed again lost. `resubmissions`: runs behind the outcomes that are new jobs.
    """

    by_state: Mapping[str, int] = field(default_factory=dict)
    by_outcome: Mapping[str, int] = field(default_factory=dict)
    rescued_gpu_hours: float = 0.0
    wasted_gpu_hours: float = 0.0
    retracted: int = 0
    resubmissions: int = 0


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality of the service's verdicts.

    `audited` failures were judged by people who did not see the verdict; the machine's side was that of
    `audited_right` of them. `audit`: the same by stratum and weighted to all failures of the week.
    `seconds_to_verdict`: median and 95th percentile from an event's arrival to its first verdict, None where none.
    `silent_hours`: hours in which no job ended at all.
    """

    diagnosed: int = 0
    abstained: int = 0
    revised: int = 0
    corrected: int = 0
    contested: int = 0
    audited: int = 0
    audited_right: int = 0
    expected_right: float | None = None
    seconds_to_verdict: tuple[float, float] | None = None
    silent_hours: tuple[datetime, ...] = ()
    audit: AuditAccuracy | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """All of one week. `weeks` are oldest first and end with the week itself.

    The breakdowns are of the week's failed jobs by code; what has none is left out. `resubmitted_by_people`: jobs that
    ended in the week and say themselves that they repeat an earlier one, without a request of this service.
    `cells` split the week's failures, so that the savings of two actions never count a failure twice.
    `groups_cut`: the week has more groups than were read.
    `previous_todo`: the actions that the published report of the week before recommended.
    `goodput`: the figures of the week; `goodput_trend`: one part for each of the last weeks, ending with this one.
    `scope`: whose jobs count. `price`: of a GPU-hour, None where none is set.
    `recorded_mitigations`: what people recorded as the fix of a failure of the week, by mitigation code.
    """

    week: str
    zone: str
    since: datetime
    until: datetime
    now: datetime
    weeks: tuple[WeekCounts, ...]
    causes: Mapping[str, Amount] = field(default_factory=dict)
    categories: Mapping[str, Amount] = field(default_factory=dict)
    symptoms: Mapping[str, Amount] = field(default_factory=dict)
    groups: tuple[GroupFacts, ...] = ()
    groups_cut: bool = False
    cells: tuple[CostCell, ...] = ()
    environment: tuple[GroupFacts, ...] = ()
    nodes: tuple[NodeFacts, ...] = ()
    incidents: tuple[IncidentFacts, ...] = ()
    automation: AutomationFacts = field(default_factory=AutomationFacts)
    resubmitted_by_people: int = 0
    recorded_mitigations: Mapping[str, int] = field(default_factory=dict)
    quality: Quality = field(default_factory=Quality)
    previous_todo: tuple[RecommendedAction, ...] = ()
    goodput: Goodput | None = None
    goodput_trend: tuple[TrendPart, ...] = ()
    scope: Scope = EVERYTHING
    price: Price | None = None
