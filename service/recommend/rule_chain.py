"""The rule chain: rules are evaluated in order, each once, until one decides against a resubmit. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from classifiers.contracts import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.contracts.advice import Mode, Plan
from service.recommend import node_exclusion
from service.recommend.facts import Facts
from service.recommend.policy import Policy

RESUBMITTING = frozenset({"resubmit_now", "resubmit_after"})
_CARE: Mapping[Mode, int] = {"act": 0, "would_have": 1, "advise": 2}


@dataclass(slots=True)
class RuleContext:
    """The input of every rule: one failure, its facts, and the effective policy for its job."""

    verdict: Verdict
    job: JobFacts
    facts: Facts
    policy: Policy
    excluded_nodes: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.excluded_nodes = node_exclusion.nodes_to_exclude(
            self.verdict, self.job, self.facts.suspicion, self.policy.suspicion
        )

    @property
    def user_side(self) -> bool:
        """Whether this failure counts towards the user's limits."""
        return self.verdict.side == "user"

    @property
    def in_turn(self) -> bool:
        """Whether the job was held in an incident and may start now."""
        return self.facts.incident is not None and self.facts.incident.turn_at is not None

    @property
    def plan(self) -> Plan:
        """Whether the job runs elsewhere (a node is excluded) or again on any node."""
        return "elsewhere" if self.excluded_nodes else "again"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of one rule: `text` names its text in reasons.toml, `slots` fill it. By default there is no objection.

    `decision` replaces the decision so far; `cap` limits the mode; `held_by` names what a hold waits for; `not_before`
    is the earliest start.
    """

    text: str = "fine"
    slots: Mapping[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    cap: Mode | None = None
    held_by: str | None = None
    not_before: datetime | None = None


NO_OBJECTION = RuleResult()


@dataclass(slots=True)
class DecisionState:
    """The decision while the rules are evaluated. `rule` set the decision, `mode_rule` the mode."""

    decision: Decision = "ask"
    rule: str = ""
    mode: Mode = "act"
    mode_rule: str = ""
    held_by: str | None = None
    not_before: datetime | None = None


class Rule(Protocol):
    """One named rule."""

    name: str

    def evaluate(self, context: RuleContext, state: DecisionState) -> RuleResult:
        """Evaluate the rule; changes nothing but `context.figures`."""
        ...


Trace = list[tuple[str, RuleResult, bool]]


def apply(name: str, result: RuleResult, state: DecisionState) -> bool:
    """Apply a rule's result; whether it changed decision or mode."""
    decided = False
    if result.decision is not None:
        state.decision, state.rule, state.held_by = result.decision, name, result.held_by
        decided = True
        if result.decision not in RESUBMITTING:
            state.not_before = None
    if result.not_before is not None:
        state.not_before = result.not_before
    if result.cap is not None and _CARE[result.cap] > _CARE[state.mode]:
        state.mode, state.mode_rule = result.cap, name
        decided = True
    return decided


def evaluate_rules(rules: tuple[Rule, ...], context: RuleContext, state: DecisionState, trace: Trace | None) -> None:
    """Evaluate rules in order until one decides against a resubmit; each result is added to `trace`, if given."""
    before = state.decision in RESUBMITTING
    for rule in rules:
        result = rule.evaluate(context, state)
        decided = result is not NO_OBJECTION and apply(rule.name, result, state)
        if trace is not None:
            trace.append((rule.name, result, decided))
        if before and state.decision not in RESUBMITTING:
            return
