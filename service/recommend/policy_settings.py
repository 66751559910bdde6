"""What a policy may say, by name: rules and every number that decisions depend on. Defaults stand in policy.toml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from classifiers.taxonomy import Decision, RetryOutlook, Side
from service.contracts.event import Status
from service.recommend.facts import OptInMode

Count = Annotated[int, Field(ge=0, strict=True)]
# Strict: a number written as text is a mistake; a whole number is also a float.
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Span = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
AtLeastOne = Annotated[float, Field(ge=1, strict=True, allow_inf_nan=False)]


class Checked(BaseModel):
    """Nothing unknown is let in, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Conditions(Checked):
    """What must hold for a rule to decide; a condition that is absent always holds."""

    status: tuple[Status, ...] | None = None
    side: tuple[Side, ...] | None = None
    cause: tuple[str, ...] | None = Field(default=None, description='codes; "HW.*" matches every code below HW')
    category: tuple[str, ...] | None = None
    retry_outlook: tuple[RetryOutlook, ...] | None = None
    abstained: bool | None = None
    disputed: bool | None = None
    suspect_node: bool | None = Field(default=None, description="whether the evidence is bound to one node of the job")
    confidence_below: Share | None = None
    confidence_at_least: Share | None = None


class Rule(Checked):
    """One rule: where all of `when` holds, `decision` is taken and `says` is the reason shown."""

    name: str = Field(min_length=1)
    when: Conditions = Conditions()
    decision: Decision
    says: str = Field(min_length=1)
    source: str = Field(min_length=1)


class OptInSettings(Checked):
    """Who may be acted on. `default` is for jobs that say nothing; `labels`: the label faultline/resubmit counts."""

    default: OptInMode
    labels: bool


class Limits(Checked):
    """Ceilings of automatic resubmits: of one lineage (`*_per_lineage`, and per window), and of a cluster or user."""

    infra_per_lineage: Count
    infra_per_window: Count
    user_per_lineage: Count
    user_per_window: Count
    window_hours: Positive
    total_hours: Span
    same_failure: Annotated[int, Field(ge=1, strict=True)]
    rate_minutes: Positive
    rate_per_cluster: Count
    rate_per_user: Count


class Backoff(Checked):
    """Pause before the n-th resubmit: base × factor^(n-1), at most `max_s`, spread by ± `jitter` of itself."""

    base_s: Span
    factor: AtLeastOne
    max_s: Span
    jitter: Share


class Cost(Checked):
    """The cost gate: what a resubmit is expected to save against what it is expected to waste, in GPU-hours."""

    enabled: bool
    prior_helps: Share
    prior_helps_elsewhere: Share
    prior_weight: Positive
    least_ratio: Span
    least_run_hours: Span
    person_hours: Span
    person_gpu_hours: Span
    most_waste_gpu_hours: Span


class Demotion(Checked):
    """A cause's resubmits become advice when their success rate is below `floor` with probability `credible`."""

    floor: Share
    credible: Annotated[float, Field(ge=0.5, lt=1, strict=True)]
    at_least: Count


class Storm(Checked):
    """The brake on resubmits of one cause, cluster and shared resource."""

    window_minutes: Positive
    most: Annotated[int, Field(ge=1, strict=True)]
    failing_share: Share
    at_least: Annotated[int, Field(ge=1, strict=True)]
    half_open_minutes: Span


class Incident(Checked):
    """When many failures are one incident, when a probe goes, and how the rest is let go."""

    jobs: Annotated[int, Field(ge=2, strict=True)]
    users: Annotated[int, Field(ge=1, strict=True)]
    window_minutes: Positive
    probe_minutes: Span
    probe_wait_minutes: Positive
    pace_per_minute: Positive
    pace_jitter: Share


class SuspicionSettings(Checked):
    """When a node is left out on suspicion alone: at least this rate ratio, and surely above `low`."""

    rate_ratio: AtLeastOne
    low: AtLeastOne
    most_nodes: Count
    most_share: Share


class Requests(Checked):
    """How much more to ask for after the request was too small."""

    memory_factor: AtLeastOne
    time_factor: AtLeastOne
    batch_factor: Annotated[float, Field(gt=0, le=1, strict=True)]


class Retrier(Checked):
    """A label (name, or its beginning with a final *) that tells that something else tries the job again."""

    label: str = Field(min_length=1)
    value: str | None = Field(default=None, description="only with this value; absent: any but the empty one, 0, false")
    who: str = Field(min_length=1)
    source: str = Field(min_length=1)


class Sections(Checked):
    """Every section of settings; an override may set any part of them."""

    opt_in: OptInSettings
    limits: Limits
    backoff: Backoff
    cost: Cost
    demotion: Demotion
    storm: Storm
    incident: Incident
    suspicion: SuspicionSettings
    request: Requests


class Where(Checked):
    """Which jobs an override is for: all of what is named must agree."""

    cluster: str | None = None
    queue: str | None = None
    team: str | None = None

    def covers(self, cluster: str | None, queue: str | None, team: str | None) -> bool:
        """Whether a job of this cluster, queue and team is meant."""
        return all(
            wanted is None or wanted == given
            for wanted, given in ((self.cluster, cluster), (self.queue, queue), (self.team, team))
        )

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """How specific this is: more keys first, then a team before a queue before a cluster."""
        named = sum(one is not None for one in (self.cluster, self.queue, self.team))
        return named, self.team is not None, self.queue is not None

    def __str__(self) -> str:
        told = ((name, getattr(self, name)) for name in ("cluster", "queue", "team"))
        return ", ".join(f"{name} {value}" for name, value in told if value is not None)


OVERRIDDEN: tuple[str, ...] = tuple(Sections.model_fields)
