"""Records of requests: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from classifiers.taxonomy import Side
from service.contracts.advice import AckResult, ActionKind, Outcome, Plan

RequestState = Literal[
    "shadow", "held", "waiting", "leased", "done", "failed", "refused", "unknown", "withdrawn", "expired"
]


Origin = Literal["policy", "person"]


OPEN_STATES: tuple[RequestState, ...] = ("held", "waiting", "leased")
"""States of a request that may still be executed."""
HOLD_TIME = timedelta(days=7)
"""How long a request stays held for an incident, a storm or a person before it expires: over a weekend (judgement)."""


Mark = Literal["never", "hold"]


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """A hook's answer to its lease. `new_job_id`: of a submission; None for a requeue of the same job."""

    result: AckResult
    new_job_id: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A resubmission request to be stored.

    `keys` are the shared resources of its failure; `incident_id` is the incident that holds it now. `held_by`:
    incident, storm, rate, repair, person ...; None if it only waits for its start time.
    """

    failure_id: int
    attempt_id: int
    verdict_version: int
    cluster: str
    job_id: str
    attempt: int | None
    user: str | None
    team: str | None
    queue: str | None
    gpus: int | None
    lineage: str
    side: str
    cause: str
    fingerprint: str
    resource: str
    state: RequestState
    origin: Origin
    kind: ActionKind
    plan: Plan
    policy: str
    not_before: datetime
    expires_at: datetime
    started_at: datetime | None = None
    gpu_hours: float = 0.0
    exclude_nodes: tuple[str, ...] = ()
    resume_from: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    ask_scheduler: bool = False
    reasons: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    incident_id: int | None = None
    held_by: str | None = None
    step: int | None = None
    asked_by: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A resubmission request; in shadow mode (`state` shadow) it is only recorded.

    `request_id` is public: lower-case letters and digits, valid in a scheduler's names and labels. `result` is the
    hook's answer, `outcome` the result of the resubmitted job (None: not known yet). `retracted`: its verdict was
    revised; with a `result` it was carried out on a retracted verdict.
    """

    request_id: str
    failure_id: int
    verdict_version: int
    cluster: str
    job_id: str
    attempt: int | None
    user: str | None
    team: str | None
    queue: str | None
    gpus: int | None
    lineage: str
    side: Side
    cause: str
    state: RequestState
    origin: Origin
    action: ActionKind
    plan: Plan
    policy: str
    exclude_nodes: tuple[str, ...]
    resume_from: str | None
    changes: Mapping[str, Any]
    reasons: tuple[str, ...]
    created_at: datetime
    not_before: datetime
    expires_at: datetime
    held_by: str | None = None
    incident_id: int | None = None
    asked_by: str | None = None
    leased_by: str | None = None
    leased_until: datetime | None = None
    leases: int = 0
    tries: int = 0
    ended_at: datetime | None = None
    result: AckResult | None = None
    detail: str | None = None
    new_job_id: str | None = None
    retracted: bool = False
    outcome: Outcome | None = None
    outcome_at: datetime | None = None
    outcome_failure_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest(Request):
    """A request with the columns that only the automation reads. `id` is its row number.

    `resource` and `keys` are the shared resources of its failure, `started_at` the start of the attempt that failed.
    """

    id: int
    attempt_id: int
    resource: str
    keys: tuple[str, ...]
    ask_scheduler: bool
    started_at: datetime | None
    lease_token: str | None
    leased_at: datetime | None


@dataclass(frozen=True, slots=True)
class Lease:
    """A request that one hook holds until `expires_at`.

    `action` requeue: start the same job again; submit: create a new job from the old one's script or spec. `changes`
    are resource requests to change (`memory_bytes`, `time_limit_s` ...). `valid_until`: the request must not be carried
    out later. `lease_count` is 1 for the first lease; if it is larger, an earlier holder did not answer, so the hook
    checks the job first. `labels` are set on the job, so that its end can be matched. `ask_scheduler`: check the
    owner's consent first.
    """

    request_id: str
    lease_token: str
    expires_at: datetime
    cluster: str
    job_id: str
    attempt: int | None
    action: ActionKind
    exclude_nodes: tuple[str, ...]
    resume_from: str | None
    changes: Mapping[str, Any]
    not_before: datetime
    reasons: tuple[str, ...]
    valid_until: datetime
    lease_count: int
    labels: Mapping[str, str]
    ask_scheduler: bool
    failure_id: int
    user: str | None = None
    queue: str | None = None
    ended_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """The kill switch."""

    stopped: bool = False
    at: datetime | None = None
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """Results of the resubmits of one cause, plan and policy version.

    `helped` succeeded or got past the point of failure; `failed` failed the same way or otherwise; `unknown` is in
    neither. `rate` = helped / (helped + failed), `low` and `high` its 95 % interval (Wilson). `demoted_at`: advice only
    since then, because the rate is credibly below the minimum.
    """

    cluster: str
    cause: str
    plan: Plan
    policy: str
    helped: int
    failed: int
    unknown: int
    pending: int
    rate: float | None
    low: float | None
    high: float | None
    demoted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LineageMember:
    """The lineage of a job: the lineage's key and its first job."""

    lineage: str
    root_job_id: str


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """One stored attempt of a lineage. `side`, `fingerprint` and `step` are of its failure, if any."""

    id: int
    cluster: str
    job_id: str
    status: str
    started_at: datetime | None
    ended_at: datetime
    failure_id: int | None
    side: str | None = None
    fingerprint: str | None = None
    step: int | None = None
    user: str | None = None
    name: str | None = None
    pod: str | None = None
    attempt: int | None = None
    submitted_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewAdvice:
    """Advice on one version of a verdict, with its facts (`facts`: plain JSON)."""

    failure_id: int
    version: int
    policy: str
    decision: str
    mode: str
    step: int | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AwaitedRequest:
    """A request whose job has not ended yet, with the columns that outcome matching needs.

    `began` is the start of the attempt that failed, `step` its last step.
    """

    id: int
    request_id: str
    failure_id: int
    cluster: str
    job_id: str
    new_job_id: str | None
    lineage: str
    kind: ActionKind
    plan: Plan
    cause: str
    policy: str
    fingerprint: str
    step: int | None
    attempt_id: int
    leased_at: datetime
    state: RequestState
    incident_id: int | None
    began: datetime | None
    resource: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class TallyRow:
    """Outcomes of resubmits of one cluster, cause, plan and policy."""

    cluster: str
    cause: str
    plan: Plan
    policy: str
    helped: int
    failed: int
    unknown: int
    pending: int


@dataclass(frozen=True, slots=True)
class Demotion:
    """An action that is advice only since `at`, with the tally at that time."""

    cluster: str
    cause: str
    plan: Plan
    policy: str
    at: datetime
    helped: int
    failed: int
    floor: float


@dataclass(frozen=True, slots=True)
class RecentResubmit:
    """An automatic resubmit and its outcome (None: not known yet)."""

    id: int
    cause: str
    resource: str
    user: str | None
    at: datetime
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class HeldStorm:
    """A key that the retry-storm limit holds. `trial`: the row number of the request released at `trial_at`."""

    key: str
    cluster: str
    held_since: datetime
    reason: str
    trial_at: datetime | None = None
    trial: int | None = None
