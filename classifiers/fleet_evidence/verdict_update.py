"""Updates a verdict with the fleet's evidence: events of nodes and failures of other jobs. Pure.

The text of a log is not enough: most symptoms of distributed jobs are those of any job (Liu et al., TOSEM 2023:
80.88 %), and time-outs, illegal accesses and exit code 137 occur on all three sides. So each item of evidence adds log
odds to one side, by evidence_weights.toml (which gives the sources): the rarer it is on as many nodes, the more. Items
for one side do not add up in full, since one fault causes many events.

Without evidence, with evidence of other nodes, or of another time a verdict stays as it is. The order of the evidence
does not matter. An updated verdict can be updated again with all that is known then.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast, get_args

from classifiers import owner_summary, taxonomy
from classifiers.contracts import ContextLine, LogVerdict, Suspect, Verdict
from classifiers.fleet_evidence.evidence_weights import EvidenceWeights, load
from classifiers.fleet_evidence.records import FleetEvidence
from classifiers.fleet_evidence.related_failures import weigh_failures
from classifiers.fleet_evidence.stored_node_events import MACHINE_STREAMS, weigh_node_events
from classifiers.node_names import short_name
from classifiers.taxonomy import SIDES, RetryOutlook, Side

# Judgement: what a side means where neither the log nor the fleet's evidence names a cause of it, and the retry outlook
# where neither gives one: another node for hardware, a later try for a service, none for a program.
_DEFAULT_CAUSE: Final[Mapping[Side, str]] = {"hardware": "HW.NODE.1", "system": "SYS.5", "user": "USER.1"}
_DEFAULT_RETRY: Final[Mapping[Side, RetryOutlook]] = {
    "hardware": "helps_elsewhere",
    "system": "helps",
    "user": "futile",
}
_MOST_CAUSES: Final = 3
_LEAST_CONFIDENCE: Final = 0.05  # keeps the odds finite (judgement)
_CONSIDERED: Final = 2.0  # a side with a cause among the log's best counts so many times its prior (judgement)

Weights = Mapping[Side, float]


def update_verdict(verdict: Verdict, evidence: FleetEvidence) -> Verdict:
    """The verdict with the fleet's evidence; the same as before where there is none."""
    weights = load()
    log = log_only(verdict)
    lines = weigh_node_events(log, evidence, weights) if evidence.node_events else []
    if evidence.failures:
        lines += weigh_failures(log, evidence, weights)
    if not lines:
        return log
    lines.sort(key=_strongest_first)
    pulls: dict[Side, float] = {side: _pull(lines, side, weights.further_factor) for side in SIDES}
    after = _posterior(_prior(log, weights), pulls)
    side = max(SIDES, key=lambda one: (after[one], one == log.side))
    is_disputed = _is_disputed(log, lines, weights)
    confidence = after[side]
    if side == log.side and pulls[side] >= _best_of_others(pulls, side):
        confidence = max(confidence, log.confidence)  # evidence for the log's own side never lowers its confidence
    cause, retry = _cause(log, side, lines)
    suspect = _suspect(log, side, lines)
    is_changed = is_disputed or side != log.side or cause != log.cause
    return replace(
        log,
        side=side,
        cause=cause,
        cause_top=tuple(dict.fromkeys((cause, *log.cause_top)))[:_MOST_CAUSES],
        confidence=confidence,
        abstained=_abstains(log, confidence, weights, is_disputed=is_disputed),
        retry_outlook=retry,
        suspect=suspect,
        explanation=_explanation(log, cause, suspect, lines, is_disputed=is_disputed)
        if is_changed
        else log.explanation,
        disputed=is_disputed,
        uncorroborated=_is_uncorroborated(log, side, pulls),
        context=tuple(lines),
        log_verdict=LogVerdict(
            log.side,
            log.cause,
            log.cause_top,
            log.confidence,
            log.abstained,
            log.retry_outlook,
            log.explanation,
            log.suspect,
            log.uncorroborated,
        ),
    )


def _is_uncorroborated(log: Verdict, side: Side, pulls: Mapping[Side, float]) -> bool:
    """Whether the log does not confirm the side: nodes alone never turn a failure of the program into another one."""
    if side != log.side:
        return log.side == "user"
    return log.uncorroborated and pulls[side] <= 0


def log_only(verdict: Verdict) -> Verdict:
    """The verdict by the log alone."""
    log = verdict.log_verdict
    if log is None:
        return verdict
    return replace(
        verdict,
        side=log.side,
        cause=log.cause,
        cause_top=log.cause_top,
        confidence=log.confidence,
        abstained=log.abstained,
        retry_outlook=log.retry_outlook,
        explanation=log.explanation,
        suspect=log.suspect,
        disputed=False,
        uncorroborated=log.uncorroborated,
        context=(),
        log_verdict=None,
    )


def _strongest_first(line: ContextLine) -> tuple[float, str, str, str, str]:
    return -abs(line.weight), line.kind, line.node or "", line.at.isoformat() if line.at else "", line.text


def _prior(log: Verdict, weights: EvidenceWeights) -> dict[Side, float]:
    """P(side) by the log: its confidence for its own side, the rest by the priors of the others."""
    is_certain = log.confidence >= weights.log_certain_from
    cap = weights.log_confidence_cap if is_certain else weights.log_uncertain_cap
    own = min(max(log.confidence, _LEAST_CONFIDENCE), cap)
    axes = taxonomy.load()
    considered = {axes.side_of(code) for code in log.cause_top}
    rest = {
        side: weights.side_priors[side] * (_CONSIDERED if side in considered else 1.0)
        for side in SIDES
        if side != log.side
    }
    total = sum(rest.values())
    return {side: own if side == log.side else (1 - own) * rest[side] / total for side in SIDES}


def _posterior(prior: Weights, pulls: Weights) -> dict[Side, float]:
    """P(side) after evidence of so many nats for each side."""
    scores = {side: math.log(prior[side]) + pulls[side] for side in SIDES}
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    return {side: math.exp(score - top) / total for side, score in scores.items()}


def _pull(lines: Sequence[ContextLine], side: Side, further_factor: float) -> float:
    """The nats of all evidence for and against a side; of each direction the strongest item counts in full."""
    total = 0.0
    for direction in (
        (line.weight for line in lines if line.side == side and line.weight > 0),
        (line.weight for line in lines if line.side == side and line.weight < 0),
    ):
        for place, weight in enumerate(sorted(direction, key=abs, reverse=True)):
            total += weight * further_factor**place
    return total


def _best_of_others(pulls: Weights, side: Side) -> float:
    return max(pull for other, pull in pulls.items() if other != side)


def _abstains(log: Verdict, confidence: float, weights: EvidenceWeights, *, is_disputed: bool) -> bool:
    if not is_disputed and confidence >= weights.decided_from:
        return False
    if not is_disputed and confidence < weights.undecided_below:
        return True
    return log.abstained


def _is_disputed(log: Verdict, lines: Sequence[ContextLine], weights: EvidenceWeights) -> bool:
    """Whether log and nodes disagree, both strongly. A log that shows only consequences is not strong."""
    if log.abstained or log.confidence < weights.log_strong:
        return False
    of_nodes = [line for line in lines if line.kind in weights.kinds]
    pulls: dict[Side, float] = {side: _pull(of_nodes, side, weights.further_factor) for side in SIDES}
    if log.side == "hardware" and pulls["hardware"] <= -weights.healthy_strong:
        return True
    has_beginning = any(line.role == "initiating" and line.stream not in MACHINE_STREAMS for line in log.evidence)
    lead = _best_of_others(pulls, log.side) - max(pulls[log.side], 0.0)
    return has_beginning and lead >= weights.nodes_strong


def _cause(log: Verdict, side: Side, lines: Sequence[ContextLine]) -> tuple[str, RetryOutlook]:
    """The log's own cause where it is of this side and rests on a beginning; else that of the strongest evidence."""
    axes = taxonomy.load()
    has_beginning = any(line.role == "initiating" for line in log.evidence)
    strongest = next((line for line in lines if line.side == side and line.weight > 0 and line.cause), None)
    if side == log.side and (has_beginning or strongest is None) and not log.abstained:
        return log.cause, log.retry_outlook
    if strongest is None or strongest.cause is None:
        cause = next((code for code in log.cause_top if axes.side_of(code) == side), _DEFAULT_CAUSE[side])
        return cause, log.retry_outlook if cause == log.cause else _DEFAULT_RETRY[side]
    if strongest.cause == log.cause:
        return log.cause, log.retry_outlook
    return strongest.cause, _retry_outlook(strongest, side)


def _retry_outlook(line: ContextLine, side: Side) -> RetryOutlook:
    weights = load()
    entry = weights.kinds.get(line.kind) or weights.related_failures.get(line.kind)
    if entry is None or entry.retry not in get_args(RetryOutlook):
        return _DEFAULT_RETRY[side]
    return cast("RetryOutlook", entry.retry)


def _suspect(log: Verdict, side: Side, lines: Sequence[ContextLine]) -> Suspect | None:
    """The node that the strongest evidence for hardware names; the log's own suspect where none does.

    Of nodes with equally strong evidence it is the one that the log names. Failures of other jobs displace no node
    whose own event is the beginning of this failure.
    """
    before = log.suspect or Suspect()
    has_own_event = any(
        line.role == "initiating" and line.stream in MACHINE_STREAMS and _same_node(line.node, before.node)
        for line in log.evidence
    )
    kinds = load().kinds
    named = [
        line
        for line in lines
        if line.side == "hardware" and line.weight > 0 and line.node and (line.kind in kinds or not has_own_event)
    ]
    if not named or side != "hardware":
        return log.suspect
    strongest = next(
        (line for line in named if line.weight == named[0].weight and _same_node(line.node, before.node)), named[0]
    )
    is_same = _same_node(strongest.node, before.node)
    rank = before.rank if is_same or before.node is None else None
    gpu = strongest.gpu if strongest.gpu is not None else (before.gpu if is_same else None)
    return Suspect(rank=rank, node=strongest.node, gpu=gpu)


def _same_node(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and short_name(one) == short_name(other)


def _explanation(
    log: Verdict, cause: str, suspect: Suspect | None, lines: Sequence[ContextLine], *, is_disputed: bool
) -> str:
    strongest = lines[0]
    where = f"Node {strongest.node}" if strongest.node is not None else "The fleet"
    kind = load().kinds.get(strongest.kind)
    observed = f"{where}: {kind.description if kind is not None else strongest.text}."
    if is_disputed:
        return f"The log and the nodes disagree, so a person should look. {observed} The log: {log.explanation}"
    return f"{owner_summary.sentence(cause, suspect)} {observed}"
