"""Everything that the pure advice reads beside the verdict and the job: what is known at one moment, as plain data.

Whoever collects it reads the store; the advice reads only this. Times are aware (UTC), sizes in bytes, spans seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from classifiers.taxonomy import Side

Outcome = Literal["succeeded", "got_past", "failed_same", "failed_otherwise", "unknown"]
Plan = Literal["elsewhere", "again"]
OptInMode = Literal["auto", "shadow", "advise", "never", "scheduler"]
IncidentState = Literal["holding", "probing", "releasing", "closed"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How resubmits ended: `helped` succeeded or got past the point of failure, `failed` did not; unknown is out."""

    helped: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class History:
    """What was done before about failures of this cause on this cluster.

    `resolved_by`: how often each mitigation (M1..M10) ended one. `resubmits`: ends of resubmits by plan, under any
    policy (what the cost gate reads). `under_policy`: the same for the version of the policy in force (what demotion
    reads). Old outcomes may be left out by whoever counts, so that a demoted action can earn its trust again.
    """

    resolved_by: Mapping[str, int] = field(default_factory=dict)
    resubmits: Mapping[Plan, Tally] = field(default_factory=dict)
    under_policy: Mapping[Plan, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastResubmit:
    """One resubmit of this lineage that was context for automatically (withdrawn and refused ones are no resubmits).

    `side` is the side of the verdict that led to it: hardware and system count on the infrastructure's ceiling, user
    on the user's. `outcome` is None while the job has not ended.
    """

    at: datetime
    side: Side
    plan: Plan = "again"
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """All attempts of one piece of work: the first job and everything resubmitted from it.

    `attempts` counts finished attempts, this one included. `same_fingerprint_without_progress` counts the failures in
    a row up to and including this one that have this one's fingerprint and no later step or checkpoint than the one
    before (1: the first time). `progressed` says that this attempt got further than any before it.
    """

    key: str = ""
    attempts: int = 1
    resubmits: tuple[PastResubmit, ...] = ()
    first_at: datetime | None = None
    gpu_hours_spent: float = 0.0
    same_fingerprint_without_progress: int = 1
    progressed: bool = False
    last_progress_step: int | None = None
    last_checkpoint: str | None = None
    last_outcome: Outcome | None = None

    def resubmitted(self, *, user: bool, since: datetime | None = None) -> int:
        """Automatic resubmits on the user's ceiling (`user`) or on the infrastructure's, all or those since a time."""
        return sum((past.side == "user") is user and (since is None or past.at >= since) for past in self.resubmits)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """How much more often jobs fail on a node than its exposure explains.

    `rate_ratio` is the empirical Bayes estimate (1.0: as often as the fleet), `low` and `high` its credible interval;
    `exposure_h` are node-hours, `failures` the weighted hardware- and system-side failures.
    """

    rate_ratio: float
    low: float
    high: float
    exposure_h: float = 0.0
    failures: float = 0.0


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """The incident that this failure was folded into.

    `turn_at` is when this job may go: set for the probe and, once its outcome has opened the way, for the others,
    each at its own time. None: the job is held.
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

    `resubmits` were let go, of them `failed` failed again and `helped` did not. `held_since` is set while the brake
    holds the key; `trial` says that one resubmit was let go since then whose outcome is not known yet.
    """

    key: str = ""
    resubmits: int = 0
    helped: int = 0
    failed: int = 0
    held_since: datetime | None = None
    trial: bool = False


@dataclass(frozen=True, slots=True)
class ActionRate:
    """Automatic resubmits within the rate window of the policy: on this cluster, and of this user there."""

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
    """Whether this job may be acted on, and who said so (`source`: label, policy ...).

    auto: act. scheduler: the hook reads the scheduler's own record (Slurm comment, Kubernetes annotation) when it
    acts, and refuses without it. shadow: record what would have been done. advise, never: advice only.
    """

    mode: OptInMode = "shadow"
    source: str = "nobody opted in"


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """The last checkpoint that the event told."""

    uri: str | None = None
    step: int | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known at `now` beside the verdict and the job.

    `suspicion` is by node, as the scheduler names it. `retrier` names what tries the job again by itself, None where
    nothing does. `dependents` are jobs that wait on this one. `queue_wait_s` is how long such a job waits to start.
    `array_task`: the job is one task of an array. `memory_requested` in bytes.
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

    @classmethod
    def alone(cls, now: datetime, history: History | None = None) -> "Facts":
        """One event without history, as if its job had opted in."""
        return cls(now=now, history=history or History(), opt_in=OptIn("auto", "assumed"))
