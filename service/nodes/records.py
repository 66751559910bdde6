"""Records of nodes, and the settings of their statistics: plain frozen dataclasses, no SQL.

Times are aware and in UTC. Texts are redacted before.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from classifiers.fleet_evidence.evidence_weights import Severity

NodeSort = Literal["-suspicion", "node"]
PLACE_NAME_MOST = 100  # characters
TEXT_MOST = 2_000  # characters kept of the text of an event
NODE_NAME_MOST = 200  # characters, as in node-event/1


@dataclass(frozen=True, slots=True)
class NewNodeEvent:
    """One event of a node, its devices or agents, or an action on it.

    `key` is 16 bytes that identify the event: it is stored once. `until` is the end of a window (maintenance). `gpu` is
    the device index. `resolved`: the condition has ended.
    """

    key: bytes
    cluster: str
    node: str
    at: datetime
    kind: str
    text: str
    severity: Severity = "info"
    source: str | None = None
    gpu: int | None = None
    resolved: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a node is, as far as it is known. `block`: nodes that one fast interconnect joins, such as NVLink."""

    rack: str | None = None
    switch: str | None = None
    zone: str | None = None
    block: str | None = None

    def with_others_of(self, other: "NodePlace") -> "NodePlace":
        """This place, with the names of the other one for what is not known here."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **known)


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """The place of one node, as a scheduler reports it."""

    cluster: str
    node: str
    place: NodePlace


@dataclass(frozen=True, slots=True)
class NodeReport:
    """The events of one record, or the places of nodes that it names; at least one of both."""

    events: tuple[NewNodeEvent, ...]
    places: tuple[KnownPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredNodeEvent:
    """A node event as stored."""

    id: int
    cluster: str
    node: str
    at: datetime
    until: datetime | None
    received_at: datetime
    source: str | None
    kind: str
    severity: Severity
    gpu: int | None
    resolved: bool
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """A time span on one node, or of one fingerprint (`name`), of a cluster; both ends are included."""

    cluster: str
    name: str
    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class NodeSuspicion:
    """How much more often jobs fail on a node than its exposure explains.

    `rate_ratio` is the empirical Bayes estimate (1.0: as often as the fleet), `low` and `high` its 90 % credible
    interval; `exposure_h` are node-hours and `failures` the weighted hardware- and system-side failures, both decayed.
    """

    rate_ratio: float
    low: float
    high: float
    exposure_h: float
    failures: float


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One line of the node list.

    `exposure_h` and `blame` (weighted failures) are the decayed counts of the suspicion, since the last repair; `jobs`
    that ended on the node and `failures` among them, of any side, are plain counts over the same days. `rack`,
    `switch`, `zone` and `block` are those that the newest event with a topology, or a scheduler's report of places,
    named.
    """

    cluster: str
    node: str
    rate_ratio: float
    low: float
    high: float
    exposure_h: float
    blame: float
    jobs: int
    failures: int
    last_failure_at: datetime | None
    last_event_at: datetime | None
    repaired_at: datetime | None
    repaired_by: str | None
    repair_note: str | None
    computed_at: datetime
    rack: str | None = None
    switch: str | None = None
    zone: str | None = None
    block: str | None = None

    @property
    def place(self) -> NodePlace:
        """Where the node is."""
        return NodePlace(self.rack, self.switch, self.zone, self.block)


@dataclass(frozen=True, slots=True)
class Repair:
    """The last repair of a node, with the note of the person who recorded it."""

    cluster: str
    node: str
    at: datetime
    note: str | None


@dataclass(frozen=True, slots=True)
class DaySums:
    """Amounts to add to one day of one node."""

    exposure_h: float = 0.0
    jobs: int = 0
    failures: int = 0
    blame: float = 0.0


@dataclass(frozen=True, slots=True)
class NodeDay:
    """One stored day of a node; `day` counts from 1970-01-01."""

    cluster: str
    node: str
    day: int
    exposure_h: float
    jobs: int
    failures: int
    blame: float


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """An attempt as counted for exposure; `failure_id` None: it did not fail (or has no verdict)."""

    id: int
    cluster: str
    nodes: tuple[str, ...]
    started_at: datetime | None
    ended_at: datetime
    status: str
    failure_id: int | None
    clock_suspect: bool


@dataclass(frozen=True, slots=True)
class JudgedFailure:
    """A failure as counted for the suspicion of nodes: its current verdict and where it ran."""

    id: int
    cluster: str
    job_id: str
    ended_at: datetime
    user: str | None
    side: str
    cause: str
    confidence: float
    abstained: bool
    fingerprint: str
    suspect_node: str | None
    nodes: tuple[str, ...]
    source: str = "machine"
    version: int = 1


@dataclass(frozen=True, slots=True)
class FailureWeights:
    """How much a failure counts against each of its nodes: weight by node."""

    failure_id: int
    cluster: str
    ended_at: datetime
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FleetPrior:
    """A cluster's failures per node-hour and the shape of the Gamma distribution over its nodes."""

    cluster: str
    rate: float
    shape: float
    nodes: int
    computed_at: datetime


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """How fast counts decay, and how long node events are kept.

    `half_life`: after this time a failure, and an hour of exposure, count half. `keep_events`: older node events are
    removed; None keeps them.
    """

    half_life: timedelta = timedelta(days=14)
    keep_events: timedelta | None = timedelta(days=90)

    @property
    def horizon_days(self) -> int:
        """The number of days that count: after eight half-lives less than half a percent remains."""
        return max(1, round(8 * self.half_life / timedelta(days=1)))
