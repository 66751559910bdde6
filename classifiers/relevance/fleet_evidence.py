"""What the fleet knows of a failure, who else failed, where, and what the nodes said, updates its verdict. Pure.

The text alone can't tell: most symptoms of distributed jobs are those of any job (Liu et al., TOSEM 2023: 80.88 %), and
time-outs, illegal accesses and exit code 137 show for all three sides. So each sign adds log odds to one side, by the
data in evidence_weights.toml (each with its source): the more telling, the rarer it is on as many nodes. Signs of one
side do not add up in full, since one fault says many things.

Without evidence, with evidence from other nodes, or from outside its window, a verdict stays as it is; the order of the
evidence does not matter; and an updated verdict may be updated again with all that is known then.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from classifiers import owner_summary, taxonomy
from classifiers.contracts import ContextLine, LogSaid, Suspect, Verdict
from classifiers.relevance.evidence_weights import Data, Kind, load
from classifiers.relevance.related_failures import OtherFailure, heard_of_others, short_name
from classifiers.taxonomy import SIDES, RetryOutlook, Side

TEXT_MOST: Final = 300
_SURELY_SEEN = frozenset({"node", "scheduler"})
_DEFAULT_CAUSE: Final[Mapping[str, str]] = {"hardware": "HW.NODE.1", "system": "SYS.5", "user": "USER.1"}
_DEFAULT_RETRY: Final[Mapping[str, RetryOutlook]] = {"hardware": "helps_elsewhere", "system": "helps", "user": "futile"}
_RETRIES: Final = frozenset({"helps", "helps_elsewhere", "after_repair", "futile"})


@dataclass(frozen=True, slots=True)
class NodeSign:
    """One thing a node said. `kind` is a code of evidence_weights.toml; an unknown one says nothing.

    `until` ends a window (maintenance); `resolved` says that the state is over.
    """

    node: str
    at: datetime
    kind: str
    text: str
    gpu: int | None = None
    resolved: bool = False
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class FleetEvidence:
    """What is known around one failed attempt: its own place, what nodes said, and who else failed.

    `usual_per_hour`: how many failures with its fingerprint an hour brings anyway, by the day before.
    """

    ended_at: datetime
    nodes: tuple[str, ...] = ()
    user: str | None = None
    signs: tuple[NodeSign, ...] = ()
    others: tuple[OtherFailure, ...] = ()
    usual_per_hour: float = 0.0


def update(verdict: Verdict, evidence: FleetEvidence) -> Verdict:
    """The verdict after the fleet's evidence was heard; the same as before where there is none."""
    data = load()
    log = as_logged(verdict)
    lines = _heard_of_nodes(log, evidence, data) if evidence.signs else []
    if evidence.others:
        lines += heard_of_others(log, evidence, data)
    if not lines:
        return log
    lines.sort(key=_strongest)
    pulls = {side: _pull(lines, side, data.further) for side in SIDES}
    before = _prior(log, data)
    scores = {side: math.log(before[side]) + pulls[side] for side in SIDES}
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    after = {side: math.exp(score - top) / total for side, score in scores.items()}
    side = max(SIDES, key=lambda one: (after[one], one == log.side))
    disputed = _disputed(log, lines, data)
    # What speaks for the log's own side never makes it less sure than it was.
    confidence = (
        max(after[side], log.confidence)
        if side == log.side and pulls[side] >= _best_of_others(pulls, side)
        else after[side]
    )
    cause, retry = _cause(log, side, lines)
    suspect = _suspect(log, side, lines)
    abstained = log.abstained
    if not disputed and confidence >= data.decides_at:
        abstained = False
    elif not disputed and confidence < data.undecided_below:
        abstained = True
    changed = disputed or side != log.side or cause != log.cause
    return replace(
        log,
        side=side,
        cause=cause,
        cause_top=tuple(dict.fromkeys((cause, *log.cause_top)))[:3],
        confidence=confidence,
        abstained=abstained,
        retry_outlook=retry,
        suspect=suspect,
        explanation=_explanation(log, cause, suspect, lines, disputed=disputed) if changed else log.explanation,
        disputed=disputed,
        context=tuple(lines),
        log_said=LogSaid(
            log.side,
            log.cause,
            log.cause_top,
            log.confidence,
            log.abstained,
            log.retry_outlook,
            log.explanation,
            log.suspect,
        ),
    )


def as_logged(verdict: Verdict) -> Verdict:
    """The verdict as the log alone made it."""
    said = verdict.log_said
    if said is None:
        return verdict
    return replace(
        verdict,
        side=said.side,
        cause=said.cause,
        cause_top=said.cause_top,
        confidence=said.confidence,
        abstained=said.abstained,
        retry_outlook=said.retry_outlook,
        explanation=said.explanation,
        suspect=said.suspect,
        disputed=False,
        context=(),
        log_said=None,
    )


def _strongest(line: ContextLine) -> tuple[float, str, str, str, str]:
    return -abs(line.weight), line.kind, line.node or "", line.at.isoformat() if line.at else "", line.text


def _heard_of_nodes(verdict: Verdict, evidence: FleetEvidence, data: Data) -> list[ContextLine]:
    """One line a kind and node: the sign of it that is nearest to the end."""
    own = {short_name(node) for node in evidence.nodes}
    known = {line.text.strip() for line in verdict.evidence if line.stream == "node"}
    nearest: dict[tuple[str, str], NodeSign] = {}
    for sign in evidence.signs:
        kind = data.kinds.get(sign.kind)
        node = short_name(sign.node)
        if kind is None or kind.side is None or sign.resolved or node not in own or not _within(sign, kind, evidence):
            continue
        if sign.text.strip() in known:  # the classifier read this very line: it counts once
            continue
        other = nearest.get((sign.kind, node))
        if other is None or _nearness(sign, evidence) < _nearness(other, evidence):
            nearest[sign.kind, node] = sign
    healthy = {node: sign for (code, node), sign in nearest.items() if code == "healthy"}
    lines = [
        ContextLine(
            kind=sign.kind,
            text=sign.text[:TEXT_MOST],
            side=_side(data.kinds[code]),
            weight=weight(data.kinds[code], len(own)),
            cause=data.kinds[code].cause or None,
            node=_own_name(node, evidence.nodes),
            at=sign.at,
            gpu=sign.gpu,
        )
        for (code, node), sign in nearest.items()
        if code != "healthy"
    ]
    bad = any(line.side == "hardware" for line in lines)
    if healthy and not bad and set(healthy) == own and verdict.side == "hardware":
        lines.append(_all_healthy(verdict, healthy, data.kinds["healthy"]))
    return [line for line in lines if abs(line.weight) >= data.least]


def _all_healthy(verdict: Verdict, healthy: Mapping[str, NodeSign], kind: Kind) -> ContextLine:
    """Against hardware; little where the machine itself told of the fault, for that may be over since."""
    itself = any(line.role == "initiating" and line.stream in _SURELY_SEEN for line in verdict.evidence)
    pull = min(kind.cap, -math.log(1 - kind.seen)) * (0.25 if itself else 1.0)
    latest = max(healthy.values(), key=lambda sign: (sign.at, sign.node))
    return ContextLine("healthy", kind.says, "hardware", -pull, at=latest.at)


def weight(kind: Kind, nodes: int) -> float:
    """How much one sign of a kind weighs (nats) for a job on so many nodes."""
    days = (kind.before_s + kind.after_s) / 86_400
    by_chance = -math.expm1(-kind.rate / 1_000 * max(1, nodes) * days)
    return max(0.0, min(kind.cap, math.log(kind.seen / max(by_chance, 1e-9))))


def _within(sign: NodeSign, kind: Kind, evidence: FleetEvidence) -> bool:
    since_end = (sign.at - evidence.ended_at).total_seconds()
    if since_end > kind.after_s:
        return False
    last = since_end if sign.until is None else max(since_end, (sign.until - evidence.ended_at).total_seconds())
    return last >= -kind.before_s


def _nearness(sign: NodeSign, evidence: FleetEvidence) -> tuple[float, str, str]:
    return abs((sign.at - evidence.ended_at).total_seconds()), sign.text, str(sign.gpu)


def _own_name(node: str, nodes: Iterable[str]) -> str:
    return min((name for name in nodes if short_name(name) == node), default=node)


def _side(kind: Kind) -> Side:
    assert kind.side is not None
    return kind.side


def _prior(log: Verdict, data: Data) -> dict[Side, float]:
    """P(side) by the log: its confidence; the rest by the base shares, double where a cause of it was thought of."""
    most = data.log_most if log.confidence >= data.log_sure else data.log_unsure
    sure = min(max(log.confidence, 0.05), most)
    axes = taxonomy.load()
    thought = {axes.side_of(code) for code in log.cause_top}
    rest = {one: data.base[one] * (2.0 if one in thought else 1.0) for one in SIDES if one != log.side}
    total = sum(rest.values())
    return {one: sure if one == log.side else (1 - sure) * rest[one] / total for one in SIDES}


def _pull(lines: Sequence[ContextLine], side: str, further: float) -> float:
    """All that is said of a side; of each direction the strongest counts in full."""
    total = 0.0
    for ways in (
        (line.weight for line in lines if line.side == side and line.weight > 0),
        (line.weight for line in lines if line.side == side and line.weight < 0),
    ):
        for place, one in enumerate(sorted(ways, key=abs, reverse=True)):
            total += one * further**place
    return total


def _best_of_others(pulls: Mapping[Side, float], side: Side) -> float:
    return max(pull for one, pull in pulls.items() if one != side)


def _disputed(log: Verdict, lines: Sequence[ContextLine], data: Data) -> bool:
    """Whether log and nodes disagree, both strongly. A log that shows consequences alone does not speak strongly."""
    if log.abstained or log.confidence < data.log_strong:
        return False
    nodes = [line for line in lines if line.kind in data.kinds]
    pulls = {side: _pull(nodes, side, data.further) for side in SIDES}
    if log.side == "hardware" and pulls["hardware"] <= -data.healthy_strong:
        return True
    own = any(line.role == "initiating" and line.stream not in _SURELY_SEEN for line in log.evidence)
    return own and _best_of_others(pulls, log.side) - max(pulls[log.side], 0.0) >= data.nodes_strong


def _cause(log: Verdict, side: Side, lines: Sequence[ContextLine]) -> tuple[str, RetryOutlook]:
    """The log's own cause where it is of this side and told by a line of its own; else the strongest sign's."""
    axes = taxonomy.load()
    own = any(line.role == "initiating" for line in log.evidence)
    told = next((line for line in lines if line.side == side and line.weight > 0 and line.cause), None)
    if side == log.side and (own or told is None) and not log.abstained:
        return log.cause, log.retry_outlook
    if told is None or told.cause is None:
        cause = next((code for code in log.cause_top if axes.side_of(code) == side), _DEFAULT_CAUSE[side])
        return cause, log.retry_outlook if cause == log.cause else _DEFAULT_RETRY[side]
    if told.cause == log.cause:
        return log.cause, log.retry_outlook
    return told.cause, _retry(told, side)


def _retry(told: ContextLine, side: Side) -> RetryOutlook:
    data = load()
    entry = data.kinds.get(told.kind) or data.neighbours.get(told.kind)
    given = entry.retry if entry is not None else ""
    return given if given in _RETRIES else _DEFAULT_RETRY[side]  # type: ignore[return-value] # one of the four


def _suspect(log: Verdict, side: Side, lines: Sequence[ContextLine]) -> Suspect | None:
    """The node that the strongest sign of hardware names; the log's own suspect where none does."""
    told = next((line for line in lines if line.side == "hardware" and line.weight > 0 and line.node), None)
    if told is None or side != "hardware":
        return log.suspect
    before = log.suspect
    same = before is not None and before.node is not None and short_name(before.node) == short_name(told.node or "")
    rank = before.rank if before is not None and (same or before.node is None) else None
    gpu = told.gpu if told.gpu is not None else (before.gpu if before is not None and same else None)
    return Suspect(rank=rank, node=told.node, gpu=gpu)


def _explanation(
    log: Verdict, cause: str, suspect: Suspect | None, lines: Sequence[ContextLine], *, disputed: bool
) -> str:
    told = lines[0]
    data = load()
    where = f"Node {told.node}" if told.node is not None else "The fleet"
    entry = data.kinds.get(told.kind)
    seen = f"{where}: {entry.says if entry is not None else told.text}."
    if disputed:
        return f"The log and the nodes disagree, so a person should look. {seen} The log: {log.explanation}"
    return f"{owner_summary.sentence(cause, suspect)} {seen}"
