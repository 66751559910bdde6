"""The weights of node events and related failures, read from evidence_weights.toml and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Literal, get_args

from classifiers import taxonomy
from classifiers.taxonomy import SIDES, Side

Severity = Literal["info", "warning", "critical", "fatal"]
_FILE: Final = "evidence_weights.toml"
_NUMBERS: Final = (
    "log_confidence_cap",
    "log_certain_from",
    "log_uncertain_cap",
    "log_strong",
    "nodes_strong",
    "healthy_strong",
    "decided_from",
    "undecided_below",
    "further_factor",
)


@dataclass(frozen=True, slots=True)
class NodeEventKind:
    """A kind of node event.

    Attributes:
        code: its code.
        title: its title.
        severity: how severe such an event is.
        description: the event as a statement on the node.
        source: where the figures come from.
        side: the side that it is evidence for, None if it is no evidence.
        cause: the cause that it is evidence for, "" if none.
        retry: the retry outlook of that cause.
        rate: how many such events 1,000 node-days have anyway.
        sensitivity: in which share of failures of this cause such an event occurs (0..1).
        cap: the most that one event weighs, in nats.
        before_s: how long before a failure's end an event counts, in seconds.
        after_s: how long after a failure's end an event counts, in seconds.
    """

    code: str
    title: str
    severity: Severity
    description: str
    source: str
    side: Side | None = None
    cause: str = ""
    retry: str = ""
    rate: float = 0.0
    sensitivity: float = 0.0
    cap: float = 0.0
    before_s: float = 0.0
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RelatedFailureRule:
    """A way in which failures of other jobs are evidence.

    Attributes:
        code: its code.
        title: its title.
        side: the side that they are evidence for.
        description: the evidence in words, with `{count}` and `{node}`.
        description_one: the same for a single failure.
        source: where the figures come from.
        cap: the most that they weigh together, in nats.
        before_s: how long before a failure's end they count, in seconds.
        after_s: how long after a failure's end they count, in seconds.
        cause: the cause that they are evidence for, "" if it is theirs.
        retry: the retry outlook of that cause.
        each: the weight of each of them, in nats; 0 where `rate` and `sensitivity` give it as for node events.
        rate: how many occur anyway.
        sensitivity: in which share of failures of this cause they occur (0..1).
    """

    code: str
    title: str
    side: Side
    description: str
    description_one: str
    source: str
    cap: float
    before_s: float
    after_s: float
    cause: str = ""
    retry: str = ""
    each: float = 0.0
    rate: float = 0.0
    sensitivity: float = 0.0


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """All of evidence_weights.toml, which explains the figures.

    Attributes:
        kinds: the kinds of node events, by code.
        related_failures: the rules on failures of other jobs, by code.
        side_priors: P(side) before any evidence.
        log_confidence_cap: the most that the confidence of a log's verdict counts (0..1).
        log_certain_from: a lower confidence is uncertain (0..1).
        log_uncertain_cap: the most that an uncertain confidence counts (0..1).
        log_strong: from this confidence on a log is strong evidence (0..1).
        nodes_strong: from this weight on node events are strong evidence (nats).
        healthy_strong: from this weight on healthy nodes dispute a hardware verdict (nats).
        decided_from: from this confidence on a verdict is decided (0..1).
        undecided_below: below this confidence a verdict is undecided (0..1).
        further_factor: what each further item for one side counts of the one before it (0..1).
        least_weight: evidence that weighs less is left out (nats; judgement).
    """

    kinds: Mapping[str, NodeEventKind]
    related_failures: Mapping[str, RelatedFailureRule]
    side_priors: Mapping[Side, float]
    log_confidence_cap: float
    log_certain_from: float
    log_uncertain_cap: float
    log_strong: float
    nodes_strong: float
    healthy_strong: float
    decided_from: float
    undecided_below: float
    further_factor: float
    least_weight: float = 0.05

    @property
    def before_s(self) -> float:
        """How long before a failure's end any node event counts, in seconds."""
        return max(kind.before_s for kind in self.kinds.values())

    @property
    def after_s(self) -> float:
        """How long after a failure's end any node event counts, in seconds."""
        return max(kind.after_s for kind in self.kinds.values())


@cache
def load() -> EvidenceWeights:
    """The packaged weights; read once.

    Raises:
        ValueError: the file contradicts itself or the taxonomy; the message names the entry.
    """
    raw = tomllib.loads(files("classifiers.fleet_evidence").joinpath(_FILE).read_text(encoding="utf-8"))
    kinds = {row["code"]: NodeEventKind(**row) for row in raw["kind"]}
    rules = {row["code"]: RelatedFailureRule(**row) for row in raw["related_failure"]}
    entries: list[NodeEventKind | RelatedFailureRule] = [*kinds.values(), *rules.values()]
    for entry in entries:
        _check(entry)
    if set(raw["side_priors"]) != set(SIDES):
        raise ValueError(f"{_FILE}: side_priors: expected a share for each side")
    return EvidenceWeights(kinds, rules, raw["side_priors"], **{name: raw[name] for name in _NUMBERS})


def _check(entry: NodeEventKind | RelatedFailureRule) -> None:
    axes = taxonomy.load()
    where = f"{_FILE}: {entry.code}"
    if entry.cause and entry.cause not in axes.causes:
        raise ValueError(f"{where}: cause: expected a code of the taxonomy, got {entry.cause!r}")
    if entry.side is not None and entry.side not in SIDES:
        raise ValueError(f"{where}: side: expected one of {', '.join(SIDES)}, got {entry.side!r}")
    if entry.retry and entry.retry not in get_args(taxonomy.RetryOutlook):
        raise ValueError(f"{where}: retry: expected a retry outlook, got {entry.retry!r}")
    if entry.side is not None and not (entry.cap > 0 and 0 <= entry.sensitivity < 1 and entry.rate >= 0):
        raise ValueError(f"{where}: expected cap > 0, 0 <= sensitivity < 1, rate >= 0")
    if isinstance(entry, NodeEventKind) and entry.severity not in get_args(Severity):
        raise ValueError(f"{where}: severity: expected one of {', '.join(get_args(Severity))}")
    if not entry.source:
        raise ValueError(f"{where}: source: expected where the figures come from")
