"""The settings of a policy: rules and every number that decisions depend on. Defaults are in policy.toml."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from classifiers.taxonomy import Decision, RetryOutlook, Side
from service.contracts.event import ExitCode, Status
from service.recommend.facts import OptInMode

Count = Annotated[int, Field(ge=0, strict=True)]
# Strict: a number written as text is rejected; an integer is accepted as a float.
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Span = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
# At most a century: a time that is reckoned from now has to stay within the calendar.
Hours = Annotated[float, Field(gt=0, le=876_000, strict=True)]
Minutes = Annotated[float, Field(gt=0, le=52_560_000, strict=True)]
MinutesOrNone = Annotated[float, Field(ge=0, le=52_560_000, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=3_153_600_000, strict=True)]
AtLeastOne = Annotated[float, Field(ge=1, strict=True, allow_inf_nan=False)]


class Checked(BaseModel):
    """Unknown settings are rejected; instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Conditions(Checked):
    """The conditions of a rule; an absent condition always holds."""

    status: tuple[Status, ...] | None = None
    exit_code: tuple[ExitCode, ...] | None = Field(default=None, description="0 to 255; a signal n is 128 + n")
    side: tuple[Side, ...] | None = None
    cause: tuple[str, ...] | None = Field(default=None, description='codes; "HW.*" matches every code below HW')
    category: tuple[str, ...] | None = None
    retry_outlook: tuple[RetryOutlook, ...] | None = None
    abstained: bool | None = None
    disputed: bool | None = None
    uncorroborated: bool | None = Field(
        default=None, description="whether the verdict rests on a node event that nothing else confirms"
    )
    suspect_node: bool | None = Field(
        default=None, description="whether nodes are excluded: that of the evidence, or those that fail too often"
    )
    confidence_below: Share | None = None
    confidence_at_least: Share | None = None


class Rule(Checked):
    """One rule: if all of `when` holds, `decision` is taken and `says` is shown as the reason."""

    name: str = Field(min_length=1)
    when: Conditions = Conditions()
    decision: Decision
    says: str = Field(min_length=1)
    source: str = Field(min_length=1)


class OptInSettings(Checked):
    """Consent settings. `default`: for jobs without a label; `labels`: the label faultline/resubmit counts.

    `label_sources`: patterns of the sources whose label may opt in, such as topic/jobs, api/TOKEN and file.
    """

    default: OptInMode
    labels: bool
    label_sources: tuple[str, ...]


class Limits(Checked):
    """Limits of automatic resubmits: per lineage (`*_per_lineage`, and per window), and per cluster and user."""

    infra_per_lineage: Count
    infra_per_window: Count
    user_per_lineage: Count
    user_per_window: Count
    window_hours: Hours
    total_hours: Span
    same_failure: Annotated[int, Field(ge=1, strict=True)]
    rate_minutes: Minutes
    rate_per_cluster: Count
    rate_per_user: Count


class Backoff(Checked):
    """The pause before the n-th resubmit: base × factor^(n-1), at most `max_s`, with ± `jitter` of itself."""

    base_s: Span
    factor: AtLeastOne
    max_s: Seconds
    jitter: Share


class Cost(Checked):
    """The cost gate: the expected saving of a resubmit compared with the expected waste, in GPU-hours."""

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
    """Resubmits of a cause become advice only if their success rate is below `floor` with probability `credible`."""

    floor: Share
    credible: Annotated[float, Field(ge=0.5, lt=1, strict=True)]
    at_least: Count


class Storm(Checked):
    """The retry-storm limit on resubmits of one cause, cluster and shared resource."""

    window_minutes: Minutes
    most: Annotated[int, Field(ge=1, strict=True)]
    failing_share: Share
    at_least: Annotated[int, Field(ge=1, strict=True)]
    half_open_minutes: MinutesOrNone


class Incident(Checked):
    """When failures form an incident, when its probe starts, and how the other jobs are released."""

    jobs: Annotated[int, Field(ge=2, strict=True)]
    users: Annotated[int, Field(ge=1, strict=True)]
    window_minutes: Minutes
    probe_minutes: MinutesOrNone
    probe_wait_minutes: Minutes
    pace_per_minute: Positive
    pace_jitter: Share


class SuspicionSettings(Checked):
    """When a node is excluded because of its failure rate: the least rate ratio, and its least lower bound."""

    rate_ratio: AtLeastOne
    low: AtLeastOne
    most_nodes: Count
    most_share: Share


class Requests(Checked):
    """Larger resource requests after a request was too small."""

    memory_factor: AtLeastOne
    time_factor: AtLeastOne
    batch_factor: Annotated[float, Field(gt=0, le=1, strict=True)]


class Retrier(Checked):
    """A label (a name, or a prefix with a final *) that shows that another system retries the job."""

    label: str = Field(min_length=1)
    value: str | None = Field(default=None, description="only with this value; absent: any but the empty one, 0, false")
    who: str = Field(min_length=1)
    source: str = Field(min_length=1)


class Sections(Checked):
    """All sections of settings; an override may set any of them."""

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
    """The scope of an override: all given values must match."""

    cluster: str | None = None
    queue: str | None = None
    team: str | None = None

    def covers(self, cluster: str | None, queue: str | None, team: str | None) -> bool:
        """Whether a job of this cluster, queue and team is in the scope."""
        return all(
            wanted is None or wanted == given
            for wanted, given in ((self.cluster, cluster), (self.queue, queue), (self.team, team))
        )

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """How specific the scope is: more values first, then team before queue before cluster."""
        named = sum(one is not None for one in (self.cluster, self.queue, self.team))
        return named, self.team is not None, self.queue is not None

    def __str__(self) -> str:
        named = ((name, getattr(self, name)) for name in ("cluster", "queue", "team"))
        return ", ".join(f"{name} {value}" for name, value in named if value is not None)


OVERRIDDEN: tuple[str, ...] = tuple(Sections.model_fields)
