"""How the rules are asked: in order, each once, until one ends the matter. Pure; words are made elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from classifiers.contracts import JobFacts, Verdict
from classifiers.taxonomy import Decision
from service.contracts.verdict import Mode
from service.recommend import node_exclusion
from service.recommend.facts import Facts, Plan
from service.recommend.policy import Policy

RESUBMITTING = frozenset({"resubmit_now", "resubmit_after"})
_CARE: Mapping[Mode, int] = {"act": 0, "would_have": 1, "advise": 2}


@dataclass(slots=True)
class Asked:
    """What is asked about: one failure, all that is known of it, and the policy that is effective for its job."""

    verdict: Verdict
    job: JobFacts
    facts: Facts
    policy: Policy
    leave_out: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.leave_out = node_exclusion.to_leave_out(
            self.verdict, self.job, self.facts.suspicion, self.policy.suspicion
        )

    @property
    def user_side(self) -> bool:
        """Whether this failure counts on the user's ceilings."""
        return self.verdict.side == "user"

    @property
    def in_turn(self) -> bool:
        """Whether the job was held in an incident and its turn to go has come."""
        return self.facts.incident is not None and self.facts.incident.turn_at is not None

    @property
    def plan(self) -> Plan:
        """Elsewhere where a node can be left out, else again."""
        return "elsewhere" if self.leave_out else "again"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one rule said: `text` names its words in reasons.toml, `slots` fill them. Nothing else set: no objection.

    `decision` replaces the decision so far; `cap` lets the mode be no bolder than this; `held_by` says what a hold
    waits for; `not_before` is the time before which nothing starts.
    """

    text: str = "fine"
    slots: Mapping[str, Any] = field(default_factory=dict)
    decision: Decision | None = None
    cap: Mode | None = None
    held_by: str | None = None
    not_before: datetime | None = None


FINE = Ruling()


@dataclass(slots=True)
class Standing:
    """Where the matter stands while the rules are asked. `rule` decided the decision, `mode_rule` the mode."""

    decision: Decision = "ask"
    rule: str = ""
    mode: Mode = "act"
    mode_rule: str = ""
    held_by: str | None = None
    not_before: datetime | None = None


class Rule(Protocol):
    """One named rule in its own place."""

    name: str

    def ask(self, asked: Asked, standing: Standing) -> Ruling:
        """What the rule says; reads only, changes nothing but `asked.figures`."""
        ...


Trace = list[tuple[str, Ruling, bool]]


def apply(name: str, ruling: Ruling, standing: Standing) -> bool:
    """Put a ruling into effect; whether it changed decision or mode."""
    decided = False
    if ruling.decision is not None:
        standing.decision, standing.rule, standing.held_by = ruling.decision, name, ruling.held_by
        decided = True
        if ruling.decision not in RESUBMITTING:
            standing.not_before = None
    if ruling.not_before is not None:
        standing.not_before = ruling.not_before
    if ruling.cap is not None and _CARE[ruling.cap] > _CARE[standing.mode]:
        standing.mode, standing.mode_rule = ruling.cap, name
        decided = True
    return decided


def ask_all(rules: tuple[Rule, ...], asked: Asked, standing: Standing, trace: Trace | None) -> None:
    """Ask rules in order until one decides against a resubmit; each asked leaves a link in `trace`, if there is one."""
    before = standing.decision in RESUBMITTING
    for rule in rules:
        ruling = rule.ask(asked, standing)
        decided = ruling is not FINE and apply(rule.name, ruling, standing)
        if trace is not None:
            trace.append((rule.name, ruling, decided))
        if before and standing.decision not in RESUBMITTING:
            return
