"""The evidence of the simulated fleet besides the log: node events and other failures, used as in the service."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from classifiers.contracts import Verdict
from classifiers.fleet_evidence import verdict_update
from classifiers.fleet_evidence.evidence_weights import load
from classifiers.fleet_evidence.records import FleetEvidence, FleetNodeEvent, RelatedFailure
from tests.simulations.policy.engine import Work
from tests.simulations.policy.world import End, World

_STORAGE = "shared_storage"


@cache
def _kind_of(cause: str) -> tuple[str, float] | None:
    """The kind of node event that a cause produces, and how often."""
    found = [kind for kind in load().kinds.values() if kind.cause == cause]
    best = max(found, key=lambda kind: kind.sensitivity, default=None)
    return None if best is None else (best.code, best.sensitivity)


@dataclass(slots=True)
class Seen:
    """One failure with its log verdict, node events, and job."""

    work: Work
    at: datetime
    logged: Verdict
    nodes: tuple[str, ...]
    node_events: tuple[FleetNodeEvent, ...]
    run: int

    @property
    def as_other(self) -> RelatedFailure:
        """The failure as evidence for another one."""
        suspect = self.logged.suspect
        return RelatedFailure(
            job=str(self.work.job.number),
            at=self.at,
            nodes=self.nodes,
            user=str(self.work.job.user),
            fingerprint=self.logged.fingerprint,
            side=self.logged.side,
            cause=self.logged.cause,
            abstained=self.logged.abstained,
            suspect_node=suspect.node if suspect is not None else None,
        )


class Fleet:
    """Failures of the last day, with which verdicts are updated."""

    def __init__(self) -> None:
        self._seen: deque[Seen] = deque()

    def saw(self, world: World, work: Work, end: End, at: datetime, logged: Verdict) -> Seen:
        """Store a failure; with some probability its nodes have an event about it."""
        nodes = tuple(str(node) for node in work.nodes)
        seen = Seen(work, at, logged, nodes, self._node_events(world, work, end, at), work.runs)
        self._seen.append(seen)
        while at - self._seen[0].at > timedelta(days=1):
            self._seen.popleft()
        return seen

    def _node_events(self, world: World, work: Work, end: End, at: datetime) -> tuple[FleetNodeEvent, ...]:
        random = world.random(work.job, 5000 + work.runs)
        assert end.truth is not None
        found, node = _kind_of(end.truth.cause), end.node
        if end.root.startswith("storage"):
            found, node = (_STORAGE, load().kinds[_STORAGE].sensitivity), work.nodes[0]
        if node is None or found is None or random.random() >= found[1] * world.parameters["node_events"]:
            return ()
        return (FleetNodeEvent(str(node), at, found[0], found[0]),)

    def verdict(self, seen: Seen) -> Verdict:
        """The verdict with all evidence so far."""
        others = tuple(
            other.as_other
            for other in self._seen
            if other.work is not seen.work
            and (other.logged.fingerprint == seen.logged.fingerprint or not set(other.nodes).isdisjoint(seen.nodes))
        )
        if not others and not seen.node_events:
            return seen.logged
        user = str(seen.work.job.user)
        return verdict_update.update_verdict(
            seen.logged, FleetEvidence(seen.at, seen.nodes, user, seen.node_events, others)
        )

    def alike(self, seen: Seen) -> list[Seen]:
        """Earlier failures of other jobs with the same fingerprint within half an hour."""
        return [
            other
            for other in self._seen
            if other.logged.fingerprint == seen.logged.fingerprint
            and other.work is not seen.work
            and seen.at - other.at <= timedelta(minutes=30)
        ]
