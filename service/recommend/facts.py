"""The input of the advice besides verdict and job: the facts known at one moment, as plain data.

The store is read before; the advice reads only these facts. Times are aware (UTC), sizes in bytes, durations in
seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from classifiers.taxonomy import Side
from service.contracts.advice import IncidentState, Outcome, Plan

OptInMode = Literal["auto", "shadow", "advise", "never", "scheduler"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Results of resubmits: `helped` succeeded or got past the failure, `failed` did not; unknown ones are left out."""

    helped: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """Past results for failures of this cause on this cluster.

    `resolved_by`: how often each mitigation (M1..M10) resolved one. `resubmits`: results of resubmits by plan, under
    any policy (input of the cost gate). `under_policy`: the same for the current policy version (input of the demotion
    rule). Old results may be left out, so that a demoted action can recover.
    """

    resolved_by: Mapping[str, int] = field(default_factory=dict)
    resubmits: Mapping[Plan, Tally] = field(default_factory=dict)
    under_policy: Mapping[Plan, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastResubmit:
    """One automatic resubmit of this lineage (withdrawn and refused requests are not counted).

    `side` is the side of the verdict that led to it: hardware and system count towards the infrastructure limit, user
    towards the user limit. `outcome` is None while the job has not ended.
    """

    at: datetime
    side: Side
    plan: Plan = "again"
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """All attempts of one lineage: the first job and every job resubmitted from it.

    `attempts` counts finished attempts, this one included. `same_fingerprint_without_progress` counts consecutive
    failures up to and including this one that have this fingerprint and no later step or checkpoint than the one
    before (1: the first time). `progressed`: this attempt got further than any before it.
    """

    key: str = ""
    attempts: int = 1
    resubmits: tuple[PastResubmit, ...] = ()
    first_at: datetime | None = None
    same_fingerprint_without_progress: int = 1
    progressed: bool = False

    def resubmitted(self, *, user: bool, since: datetime | None = None) -> int:
        """The number of automatic resubmits that count towards the user (`user`) or the infrastructure limit."""
        return sum((past.side == "user") is user and (since is None or past.at >= since) for past in self.resubmits)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """How much more often jobs fail on a node than its exposure explains.

    `rate_ratio` is the empirical Bayes estimate (1.0: as often as the fleet), `low` and `high` its credible interval;
    `exposure_h` is in node-hours, `failures` are the weighted hardware- and system-side failures.
    """

    rate_ratio: float
    low: float
    high: float
    exposure_h: float = 0.0
    failures: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """The incident that this failure belongs to.

    `turn_at` is when this job may start: set for the probe and, after a successful probe, for each of the other jobs.
    None: the job is held.
    """

    id: int
    key: str
    opened_at: datetime
    jobs: int = 0
    users: int = 0
    state: IncidentState = "holding"
    turn_at: datetime | None = None
    is_probe: bool = False


@dataclass(frozen=True, slots=True)
class StormState:
    """Resubmits of one cause, cluster and shared resource (`key`) within the storm window of the policy.

    Of the `resubmits`, `failed` failed again and `helped` did not. `held_since` is set while the retry-storm limit
    holds the key; `trial`: one resubmit was released since then and its outcome is not known yet.
    """

    key: str = ""
    resubmits: int = 0
    helped: int = 0
    failed: int = 0
    held_since: datetime | None = None
    trial: bool = False


@dataclass(frozen=True, slots=True)
class ActionRate:
    """Automatic resubmits within the rate window of the policy: on this cluster, and of this user on it."""

    cluster: int = 0
    user: int = 0


@dataclass(frozen=True, slots=True)
class SwitchState:
    """The kill switch. `stopped`: nothing is done automatically anywhere."""

    stopped: bool = False
    by: str | None = None
    at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class OptIn:
    """Whether this job may be resubmitted automatically, and where that comes from (`source`: label, policy ...).

    auto: act. scheduler: the hook reads the scheduler's own record (Slurm comment, Kubernetes annotation) when it
    acts, and refuses without consent. shadow: only record the action. advise, never: advice only.
    """

    mode: OptInMode = "shadow"
    source: str = "nobody opted in"
    by_label: bool = False  # the event says so: the hook confirms it at the scheduler

    @property
    def confirmed_by_hook(self) -> bool:
        """Whether the hook needs the owner's consent in the scheduler's own record."""
        return self.mode == "scheduler" or (self.mode == "auto" and self.by_label)


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """The last checkpoint that the event reports."""

    uri: str | None = None
    step: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts known at `now` besides verdict and job.

    `suspicion` is by node, under the scheduler's name of the node. `retrier` names what else retries the job, None if
    nothing does. `dependents` are jobs that wait for this one. `queue_wait_s` is the expected queue wait.
    `array_task`: the job is one task of an array. `memory_requested` is in bytes.
    """

    now: datetime
    lineage: Lineage = Lineage()
    history: History = field(default_factory=History)
    suspicion: Mapping[str, Suspicion] = field(default_factory=dict)
    incident: OpenIncident | None = None
    storm: StormState = StormState()
    rate: ActionRate = ActionRate()
    switch: SwitchState = SwitchState()
    opt_in: OptIn = OptIn()
    retrier: str | None = None
    dependents: tuple[str, ...] = ()
    queue_wait_s: float | None = None
    checkpoint: KnownCheckpoint | None = None
    memory_requested: int | None = None
    array_task: bool = False
