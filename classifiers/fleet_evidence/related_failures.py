"""Failures of other jobs as evidence on this one. Pure; the weights are in evidence_weights.toml."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from classifiers.contracts import ContextLine, Verdict
from classifiers.fleet_evidence.evidence_weights import EvidenceWeights, RelatedFailureRule
from classifiers.fleet_evidence.records import FleetEvidence, RelatedFailure
from classifiers.node_names import short_name
from classifiers.taxonomy import Side

_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600
_LEAST_CHANCE: Final = 1e-9  # keeps the logarithm finite
_MOST_TERMS: Final = 50  # of the Poisson sum: later ones do not change the weight


def weigh_failures(verdict: Verdict, evidence: FleetEvidence, weights: EvidenceWeights) -> list[ContextLine]:
    """The evidence of other failures, at most one line for each rule and node."""
    lines = _failures_on_node(evidence, weights)
    if any(other.fingerprint == verdict.fingerprint for other in evidence.failures):
        alike = (_alike_of_others(verdict, evidence, weights), _alike_elsewhere(verdict, evidence, weights))
        lines = [*(line for line in alike if line is not None), *lines]
    return [line for line in lines if line.weight >= weights.least_weight]


def _is_near(other: RelatedFailure, evidence: FleetEvidence, rule: RelatedFailureRule) -> bool:
    seconds = (other.at - evidence.ended_at).total_seconds()
    return -rule.before_s <= seconds <= rule.after_s


def _alike_of_others(verdict: Verdict, evidence: FleetEvidence, weights: EvidenceWeights) -> ContextLine | None:
    """Failures of other users with the same fingerprint at about the same time: they share something."""
    rule = weights.related_failures["alike"]
    found = [
        other
        for other in evidence.failures
        if other.fingerprint == verdict.fingerprint
        and other.user is not None
        and other.user != evidence.user
        and _is_near(other, evidence, rule)
    ]
    users = {other.user for other in found}
    if not users or evidence.user is None:
        return None
    own = evidence.node_names
    if own and all(own & set(map(short_name, other.nodes)) for other in found):
        return None  # they share a node: the rule on nodes covers that
    causes = Counter(other.cause for other in found if other.side != "user" and not other.abstained)
    cause = max(causes, key=lambda code: (causes[code], code)) if causes else rule.cause
    expected = max(rule.rate, evidence.usual_per_hour) * (rule.before_s + rule.after_s) / _HOUR_S
    return _line(
        rule,
        _Finding(
            side="hardware" if cause.startswith("HW.") else "system",
            weight=_weight(rule, len(users), expected),
            cause=cause,
            count=len(users),
        ),
    )


def _alike_elsewhere(verdict: Verdict, evidence: FleetEvidence, weights: EvidenceWeights) -> ContextLine | None:
    """Failures of the same user with the same fingerprint on other nodes: they follow the program."""
    rule = weights.related_failures["elsewhere"]
    own = evidence.node_names
    if evidence.user is None or not own:
        return None
    jobs = {
        other.job
        for other in evidence.failures
        if other.fingerprint == verdict.fingerprint
        and other.user == evidence.user
        and other.nodes
        and _is_near(other, evidence, rule)
        and not own & set(map(short_name, other.nodes))
    }
    if not jobs:
        return None
    weight = min(rule.cap, rule.each * len(jobs))
    return _line(rule, _Finding(side="user", weight=weight, cause=rule.cause, count=len(jobs)))


def _failures_on_node(evidence: FleetEvidence, weights: EvidenceWeights) -> list[ContextLine]:
    """Failures of hardware or system of other jobs that are known to be of one of this job's nodes."""
    rule = weights.related_failures["same_node"]
    relevant = [other for other in evidence.failures if other.side != "user" and not other.abstained]
    if not relevant:
        return []
    names = {short_name(node): node for node in sorted(evidence.nodes, reverse=True)}
    by_node: defaultdict[str, dict[str, RelatedFailure]] = defaultdict(dict)
    for other in relevant:
        named = other.known_node
        if named is None or short_name(named) not in names or not _is_near(other, evidence, rule):
            continue
        jobs = by_node[short_name(named)]
        known = jobs.get(other.job)
        if known is None or (other.at, other.cause) < (known.at, known.cause):
            jobs[other.job] = other
    days = (rule.before_s + rule.after_s) / _DAY_S
    expected = rule.rate / 1_000 * max(1, len(names)) * days
    lines = []
    for node, jobs in sorted(by_node.items()):
        causes = Counter(other.cause for other in jobs.values())
        cause = max(causes, key=lambda code: (code.startswith("HW."), causes[code], code))
        finding = _Finding(
            side="hardware",
            weight=_weight(rule, len(jobs), expected),
            cause=cause if cause.startswith("HW.") else "",
            count=len(jobs),
            node=names[node],
            at=max(other.at for other in jobs.values()),
        )
        lines.append(_line(rule, finding))
    return lines


def _weight(rule: RelatedFailureRule, count: int, expected: float) -> float:
    """The weight of so many failures (nats) where so many are expected anyway."""
    return max(0.0, min(rule.cap, math.log(rule.sensitivity / max(_at_least(count, expected), _LEAST_CHANCE))))


def _at_least(count: int, expected: float) -> float:
    """P(a Poisson variable ≥ count)."""
    term, total = math.exp(-expected), 0.0
    for number in range(min(count, _MOST_TERMS)):
        total += term
        term *= expected / (number + 1)
    return max(0.0, 1.0 - total)


@dataclass(frozen=True, slots=True)
class _Finding:
    """The result of a rule: side and cause, weight in nats, number of failures, node and time."""

    side: Side
    weight: float
    cause: str
    count: int
    node: str | None = None
    at: datetime | None = None


def _line(rule: RelatedFailureRule, finding: _Finding) -> ContextLine:
    words = rule.description_one if finding.count == 1 else rule.description
    text = words.replace("{count}", str(finding.count)).replace("{node}", finding.node or "")
    return ContextLine(
        kind=rule.code,
        text=text[:1].upper() + text[1:],
        side=finding.side,
        weight=finding.weight,
        cause=finding.cause or None,
        node=finding.node,
        at=finding.at,
    )
