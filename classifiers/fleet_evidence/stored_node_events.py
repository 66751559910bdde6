"""Stored events of nodes as evidence on a failure. Pure; the weights are in evidence_weights.toml."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from classifiers.contracts import ContextLine, Verdict
from classifiers.fleet_evidence.evidence_weights import EvidenceWeights, NodeEventKind
from classifiers.fleet_evidence.records import FleetEvidence, FleetNodeEvent
from classifiers.node_names import short_name
from classifiers.taxonomy import Side

TEXT_LENGTH: Final = 300  # characters (judgement)
MACHINE_STREAMS: Final = frozenset({"node", "scheduler"})
_DAY_S: Final = 86_400
_LEAST_CHANCE: Final = 1e-9  # keeps the logarithm finite
# Where the machine itself reported the fault, being healthy later counts this much (judgement: it may be repaired).
_HEALTHY_AGAIN: Final = 0.25


def weigh_node_events(verdict: Verdict, evidence: FleetEvidence, weights: EvidenceWeights) -> list[ContextLine]:
    """The evidence of node events: for each kind and node the one nearest to the failure's end."""
    own = evidence.node_names
    nearest = _nearest(verdict, evidence, weights)
    healthy = {node: one for (code, node), one in nearest.items() if code == "healthy"}
    lines = [
        ContextLine(
            kind=one.kind,
            text=one.text[:TEXT_LENGTH],
            side=_side(weights.kinds[code]),
            weight=weight(weights.kinds[code], len(own)),
            cause=weights.kinds[code].cause or None,
            node=_name_in_job(node, evidence.nodes),
            at=one.at,
            gpu=one.gpu,
        )
        for (code, node), one in nearest.items()
        if code != "healthy"
    ]
    is_faulty = any(line.side == "hardware" for line in lines)
    if healthy and not is_faulty and set(healthy) == own and verdict.side == "hardware":
        lines.append(_all_healthy(verdict, healthy, weights.kinds["healthy"]))
    return [line for line in lines if abs(line.weight) >= weights.least_weight]


def weight(kind: NodeEventKind, nodes: int) -> float:
    """The weight (nats) of one event of a kind for a job on so many nodes."""
    days = (kind.before_s + kind.after_s) / _DAY_S
    by_chance = -math.expm1(-kind.rate / 1_000 * max(1, nodes) * days)
    return max(0.0, min(kind.cap, math.log(kind.sensitivity / max(by_chance, _LEAST_CHANCE))))


def _nearest(
    verdict: Verdict, evidence: FleetEvidence, weights: EvidenceWeights
) -> dict[tuple[str, str], FleetNodeEvent]:
    """By kind and node the relevant event that is nearest to the failure's end."""
    own = evidence.node_names
    read = {line.text.strip() for line in verdict.evidence if line.stream == "node"}  # by the classifier: counts once
    nearest: dict[tuple[str, str], FleetNodeEvent] = {}
    for one in evidence.node_events:
        kind = weights.kinds.get(one.kind)
        node = short_name(one.node)
        if kind is None or kind.side is None or one.resolved or node not in own or one.text.strip() in read:
            continue
        if not _is_within(one, kind, evidence):
            continue
        other = nearest.get((one.kind, node))
        if other is None or _nearness(one, evidence) < _nearness(other, evidence):
            nearest[one.kind, node] = one
    return nearest


def _all_healthy(verdict: Verdict, healthy: Mapping[str, FleetNodeEvent], kind: NodeEventKind) -> ContextLine:
    """Evidence against hardware."""
    by_machine = any(line.role == "initiating" and line.stream in MACHINE_STREAMS for line in verdict.evidence)
    pull = min(kind.cap, -math.log(1 - kind.sensitivity)) * (_HEALTHY_AGAIN if by_machine else 1.0)
    latest = max(healthy.values(), key=lambda one: (one.at, one.node))
    return ContextLine("healthy", kind.description, "hardware", -pull, at=latest.at)


def _is_within(one: FleetNodeEvent, kind: NodeEventKind, evidence: FleetEvidence) -> bool:
    """Whether an event is within the window of its kind around the failure's end."""
    since_end = (one.at - evidence.ended_at).total_seconds()
    if since_end > kind.after_s:
        return False
    last = since_end if one.until is None else max(since_end, (one.until - evidence.ended_at).total_seconds())
    return last >= -kind.before_s


def _nearness(one: FleetNodeEvent, evidence: FleetEvidence) -> tuple[float, str, str]:
    return abs((one.at - evidence.ended_at).total_seconds()), one.text, str(one.gpu)


def _name_in_job(node: str, nodes: Iterable[str]) -> str:
    return min((name for name in nodes if short_name(name) == node), default=node)


def _side(kind: NodeEventKind) -> Side:
    assert kind.side is not None
    return kind.side
