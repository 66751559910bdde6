"""The fleet's evidence around one failed attempt: events of its nodes and failures of other jobs."""

from dataclasses import dataclass
from datetime import datetime

from classifiers.node_names import short_name
from classifiers.taxonomy import Side


@dataclass(frozen=True, slots=True)
class FleetNodeEvent:
    """An event of a node as the fleet knows it: of a kind that has a weight, and with the time that it lasted.

    Attributes:
        node: the node.
        at: when it was.
        kind: a code of evidence_weights.toml; an unknown one is no evidence.
        text: the event's text.
        gpu: the device, None if unknown.
        resolved: whether the state is over.
        until: the end of a window (maintenance), None if it is no window.
    """

    node: str
    at: datetime
    kind: str
    text: str
    gpu: int | None = None
    resolved: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RelatedFailure:
    """A failure of another job near this one. `job` names it (cluster and job id): attempts of one job count once."""

    job: str
    at: datetime
    nodes: tuple[str, ...]
    user: str | None
    fingerprint: str
    side: Side
    cause: str
    abstained: bool = False
    suspect_node: str | None = None

    @property
    def known_node(self) -> str | None:
        """The node that it is known to be of: the suspected one, or its only one."""
        return self.suspect_node or (self.nodes[0] if len(self.nodes) == 1 else None)


@dataclass(frozen=True, slots=True)
class FleetEvidence:
    """The evidence around one failed attempt.

    Attributes:
        ended_at: when the attempt ended.
        nodes: its nodes.
        user: its owner.
        node_events: events of nodes, its own among them.
        failures: failures of other jobs.
        usual_per_hour: how many failures with its fingerprint an hour has anyway, by the day before.
    """

    ended_at: datetime
    nodes: tuple[str, ...] = ()
    user: str | None = None
    node_events: tuple[FleetNodeEvent, ...] = ()
    failures: tuple[RelatedFailure, ...] = ()
    usual_per_hour: float = 0.0

    @property
    def node_names(self) -> frozenset[str]:
        """The short names of its nodes."""
        return frozenset(map(short_name, self.nodes))
