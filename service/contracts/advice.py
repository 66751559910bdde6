"""The advice on a verdict: mitigations, the decision on a resubmission, the rules behind it, and outcomes."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from classifiers.taxonomy import Decision

Plan = Literal["elsewhere", "again"]
# The result of a resubmitted job, compared with the original failure.
Outcome = Literal["succeeded", "got_past", "failed_same", "failed_otherwise", "unknown"]
IncidentState = Literal["holding", "probing", "releasing", "closed"]

# "unknown" (cancelled, preempted, no end reported) is in neither group.
HELPED: frozenset[Outcome] = frozenset({"succeeded", "got_past"})
FAILED: frozenset[Outcome] = frozenset({"failed_same", "failed_otherwise"})

# Labels of jobs, on Kubernetes also annotations, on Slurm words in the comment.
OPT_IN_LABEL = "faultline/resubmit"  # the owner's wish
REQUEST_LABEL = "faultline/request"
LINEAGE_LABEL = "faultline/lineage"
RESUBMIT_OF_LABEL = "faultline/resubmit-of"


ActionKind = Literal["requeue", "submit"]
AckResult = Literal["done", "already_done", "refused", "unknown"]  # a hook's answer to a request
# act: a request is created. would_have: shadow mode, recorded only. advise: a recommendation to a person.
Mode = Literal["act", "would_have", "advise"]


@dataclass(frozen=True, slots=True)
class Mitigation:
    """One of the ten mitigations of Gao et al. with instructions. `score` is a posterior probability (0..1)."""

    code: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """The action of a hook: resubmission of the job.

    `plan`: elsewhere (nodes are excluded) or again (after a pause). `changes`: changed resource requests
    (`memory_bytes`, `time_limit_s` ...) in the hook's format. `not_before`: earliest time, None: immediately.
    `ask_scheduler`: the hook first checks the owner's consent in the scheduler's record and refuses without it.
    """

    kind: ActionKind = "requeue"
    plan: Literal["elsewhere", "again"] = "again"
    exclude_nodes: tuple[str, ...] = ()
    resume_from: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    ask_scheduler: bool = False


@dataclass(frozen=True, slots=True)
class EvaluatedRule:
    """One evaluated rule: its name, its result, and whether it set the decision or the mode."""

    name: str
    explanation: str
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommended response to a verdict.

    `resubmit` is the recommendation of the built-in policy for this event without history, as if the job had opted in;
    `decision` is that of the site's policy and considers all known facts. `action` is the action to take: set if the
    decision is to resubmit or to hold until a temporary condition ends (`held_by`: repair, incident, storm, rate,
    window, policy; person if somebody holds it). `mode` controls automatic requests: one is created only if `mode` is
    act and the decision is to resubmit; if `mode` is act and the decision is hold, the request is held and released
    later. `incident` is the id of the incident that holds it. `reasons` describe `evaluated_rules` in the order of
    evaluation; `rule` is the name of the deciding rule. `changes` are resource requests to change before the next run,
    automatic or manual; `figures` are those of the cost gate.
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
    evaluated_rules: tuple[EvaluatedRule, ...] = ()
    ask_whom: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
