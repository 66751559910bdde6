"""Who else failed: what other jobs' failures say of this one. Pure; the weights stand in evidence_weights.toml."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from classifiers.contracts import ContextLine, Verdict
from classifiers.relevance.evidence_weights import Data, Neighbour
from classifiers.taxonomy import Side

if TYPE_CHECKING:
    from classifiers.relevance.fleet_evidence import FleetEvidence


@dataclass(frozen=True, slots=True)
class OtherFailure:
    """Another failed job near this one. `job` names it (cluster and job id): attempts of one job count once."""

    job: str
    at: datetime
    nodes: tuple[str, ...]
    user: str | None
    fingerprint: str
    side: Side
    cause: str
    abstained: bool = False
    suspect_node: str | None = None


def short_name(node: str) -> str:
    """A node's name without its domain, in lower case: logs, kernels and schedulers do not agree on it."""
    return node.partition(".")[0].lower()


def heard_of_others(verdict: Verdict, evidence: "FleetEvidence", data: Data) -> list[ContextLine]:
    """At most one line a kind and node."""
    lines = _same_node(evidence, data)
    if any(other.fingerprint == verdict.fingerprint for other in evidence.others):
        alike = (_alike(verdict, evidence, data), _elsewhere(verdict, evidence, data))
        lines = [*(line for line in alike if line is not None), *lines]
    return [line for line in lines if line.weight >= data.least]


def _is_near(other: OtherFailure, evidence: "FleetEvidence", rule: Neighbour) -> bool:
    seconds = (other.at - evidence.ended_at).total_seconds()
    return -rule.before_s <= seconds <= rule.after_s


def _alike(verdict: Verdict, evidence: "FleetEvidence", data: Data) -> ContextLine | None:
    """Other users with the same fingerprint at about the same time: something they share."""
    rule = data.neighbours["alike"]
    found = [
        other
        for other in evidence.others
        if other.fingerprint == verdict.fingerprint
        and other.user is not None
        and other.user != evidence.user
        and _is_near(other, evidence, rule)
    ]
    users = {other.user for other in found}
    if not users or evidence.user is None:
        return None
    own = {short_name(node) for node in evidence.nodes}
    if own and all(own & {short_name(node) for node in other.nodes} for other in found):
        return None  # they share a node: that is told of the node
    causes = Counter(other.cause for other in found if other.side != "user" and not other.abstained)
    cause = max(causes, key=lambda code: (causes[code], code)) if causes else rule.cause
    side: Side = "hardware" if cause.startswith("HW.") else "system"
    expected = max(rule.rate, evidence.usual_per_hour) * (rule.before_s + rule.after_s) / 3_600
    return _line(rule, side, _surprise(rule, len(users), expected), cause, len(users))


def _elsewhere(verdict: Verdict, evidence: "FleetEvidence", data: Data) -> ContextLine | None:
    """The same user's jobs failing alike on other nodes: it follows the program."""
    rule = data.neighbours["elsewhere"]
    own = {short_name(node) for node in evidence.nodes}
    if evidence.user is None or not own:
        return None
    jobs = {
        other.job
        for other in evidence.others
        if other.fingerprint == verdict.fingerprint
        and other.user == evidence.user
        and other.nodes
        and _is_near(other, evidence, rule)
        and not own & {short_name(node) for node in other.nodes}
    }
    if not jobs:
        return None
    return _line(rule, "user", min(rule.cap, rule.each * len(jobs)), rule.cause, len(jobs))


def _same_node(evidence: "FleetEvidence", data: Data) -> list[ContextLine]:
    """Other jobs that failed of hardware or system where it is known on which node, and it is one of ours."""
    rule = data.neighbours["same_node"]
    if all(other.side == "user" or other.abstained for other in evidence.others):
        return []
    own = {short_name(node): node for node in sorted(evidence.nodes, reverse=True)}
    found: defaultdict[str, dict[str, OtherFailure]] = defaultdict(dict)
    for other in evidence.others:
        if other.side == "user" or other.abstained:
            continue
        named = other.suspect_node or (other.nodes[0] if len(other.nodes) == 1 else None)
        if named is None or short_name(named) not in own or not _is_near(other, evidence, rule):
            continue
        there = found[short_name(named)]
        known = there.get(other.job)
        if known is None or (other.at, other.cause) < (known.at, known.cause):
            there[other.job] = other
    lines = []
    days = (rule.before_s + rule.after_s) / 86_400
    expected = rule.rate / 1_000 * max(1, len(own)) * days
    for node, jobs in sorted(found.items()):
        causes = Counter(other.cause for other in jobs.values())
        cause = max(causes, key=lambda code: (code.startswith("HW."), causes[code], code))
        pull = _surprise(rule, len(jobs), expected)
        side: Side = "hardware"
        lines.append(
            _line(
                rule,
                side,
                pull,
                cause if cause.startswith("HW.") else None,
                len(jobs),
                own[node],
                max(other.at for other in jobs.values()),
            )
        )
    return lines


def _surprise(rule: Neighbour, count: int, expected: float) -> float:
    """How much so many weigh (nats) where so many are expected anyway."""
    return max(0.0, min(rule.cap, math.log(rule.seen / max(_at_least(count, expected), 1e-9))))


def _at_least(count: int, expected: float) -> float:
    """P(a Poisson variable ≥ count)."""
    term, total = math.exp(-expected), 0.0
    for number in range(min(count, 50)):
        total += term
        term *= expected / (number + 1)
    return max(0.0, 1.0 - total)


def _line(
    rule: Neighbour,
    side: Side,
    pull: float,
    cause: str | None,
    count: int,
    node: str | None = None,
    at: datetime | None = None,
) -> ContextLine:
    says = rule.says_one if count == 1 else rule.says
    text = says.replace("{count}", str(count)).replace("{node}", node or "")
    return ContextLine(rule.code, text[:1].upper() + text[1:], side, pull, cause or None, node, at)
