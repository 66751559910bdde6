"""The advice on a verdict: mitigations, the decision on a resubmission, and the rules that led to it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from classifiers.taxonomy import Decision

ActionKind = Literal["requeue", "submit"]
# act: a request is created. would_have: shadow mode, recorded only. advise: a recommendation to a person.
Mode = Literal["act", "would_have", "advise"]


@dataclass(frozen=True, slots=True)
class Mitigation:
    """One of the ten mitigations of Gao et al. made concrete. `score` is a posterior probability (0..1)."""

    code: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """What a hook would do: start the job again.

    `plan`: elsewhere (nodes are left out) or again (after a pause). `changes` are requests to change (`memory_bytes`,
    `time_limit_s` ...), as a hook writes them. `not_before`: not earlier than this, None at once. `ask_scheduler`: the
    hook looks for the owner's consent in the scheduler's own record first, and refuses without it.
    """

    kind: ActionKind = "requeue"
    plan: Literal["elsewhere", "again"] = "again"
    exclude_nodes: tuple[str, ...] = ()
    resume_from: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    ask_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class RuleAsked:
    """One link of the chain of reasons: the rule's name, what it said, and whether it set the decision or the mode."""

    name: str
    said: str
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a verdict.

    `resubmit` answers for this event without history, as if the job had opted in; `decision` answers with all that is
    known. `action` is what would be done: set where the decision is to resubmit, and where it is held only until
    something ends (`held_by`: repair, incident, storm, rate, window). `mode` says whether it may be done: an automatic
    request is made only where `mode` is act and the decision is to resubmit; where `mode` is act and the decision is
    hold, the request is kept held and asked again later. `incident` is the id of the incident that holds it.
    `reasons` are `rules_asked` in words, in the order asked; `rule` is the name of the one that decided. `changes` are
    requests that should be different next time, whoever starts it; `figures` are those of the cost gate.
    """

    mitigations: tuple[Mitigation, ...]
    decision: Decision
    resubmit: bool
    reasons: tuple[str, ...]
    policy: str
    exclude_nodes: tuple[str, ...] = ()
    action: Action | None = None
    mode: Mode = "advise"
    incident: int | None = None
    held_by: str | None = None
    rule: str = ""
    rules_asked: tuple[RuleAsked, ...] = ()
    ask_whom: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
