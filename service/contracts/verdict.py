"""verdict/1: what classification and the built-in policy say of one event, as others read it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from classifiers.contracts import ContextLine, Evidence, LogVerdict, Verdict
from classifiers.taxonomy import Decision

SCHEMA = "verdict/1"

ActionKind = Literal["requeue", "submit"]
# act: a request is made. would_have: recorded only. advise: a person may do it, nothing is done automatically.
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


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A verdict with its advice."""

    verdict: Verdict
    advice: Advice


def evidence_to_wire(evidence: Evidence) -> dict[str, Any]:
    """One evidence line as in verdict/1."""
    return {
        "rank": evidence.rank,
        "node": evidence.node,
        "stream": evidence.stream,
        "line": evidence.line,
        "text": evidence.text,
        "role": evidence.role,
        "signature": evidence.signature,
    }


def action_to_wire(action: Action) -> dict[str, Any]:
    """The action as in verdict/1 and in a leased request."""
    return {
        "action": action.kind,
        "plan": action.plan,
        "exclude_nodes": list(action.exclude_nodes),
        "resume_from": action.resume_from,
        "changes": action.changes,
        "not_before": None if action.not_before is None else action.not_before.isoformat(),
        "ask_scheduler": action.ask_scheduler,
    }


def _context_to_wire(line: ContextLine) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "text": line.text,
        "side": line.side,
        "weight": round(line.weight, 3),
        "cause": line.cause,
        "node": line.node,
        "at": None if line.at is None else line.at.isoformat(),
        "gpu": line.gpu,
    }


def _log_said_to_wire(said: LogVerdict) -> dict[str, Any]:
    suspect = said.suspect
    return {
        "side": said.side,
        "cause": said.cause,
        "cause_top": list(said.cause_top),
        "confidence": round(said.confidence, 4),
        "abstained": said.abstained,
        "retry_outlook": said.retry_outlook,
        "explanation": said.explanation,
        "suspect": None if suspect is None else {"rank": suspect.rank, "node": suspect.node, "gpu": suspect.gpu},
    }


def to_wire(diagnosis: Diagnosis, *, event_id: str, cluster: str, job_id: str, attempt: int | None) -> dict[str, Any]:
    """The verdict/1 object (contract, section 3)."""
    verdict, advice = diagnosis.verdict, diagnosis.advice
    suspect, progress = verdict.suspect, verdict.progress
    return {
        "schema": SCHEMA,
        "event_id": event_id,
        "cluster": cluster,
        "job_id": job_id,
        "attempt": attempt,
        "side": verdict.side,
        "cause": verdict.cause,
        "cause_top": list(verdict.cause_top),
        "category": verdict.category,
        "symptom": verdict.symptom,
        "symptom_top": list(verdict.symptom_top),
        "platform_symptom": verdict.platform_symptom,
        "confidence": round(verdict.confidence, 4),
        "abstained": verdict.abstained,
        "evidence": [evidence_to_wire(line) for line in verdict.evidence],
        "suspect": None if suspect is None else {"rank": suspect.rank, "node": suspect.node, "gpu": suspect.gpu},
        "missing": list(verdict.missing),
        "progress": None
        if progress is None
        else {
            "step": progress.step,
            "checkpoint": progress.checkpoint,
            "at": None if progress.at is None else progress.at.isoformat(),
        },
        "fingerprint": verdict.fingerprint,
        "mitigations": [{"code": m.code, "score": round(m.score, 4), "text": m.text} for m in advice.mitigations],
        "decision": advice.decision,
        "resubmit": advice.resubmit,
        "reasons": list(advice.reasons),
        "exclude_nodes": list(advice.exclude_nodes),
        "policy": advice.policy,
        "rule": advice.rule,
        "mode": advice.mode,
        "action": None if advice.action is None else action_to_wire(advice.action),
        "incident": advice.incident,
        "held_by": advice.held_by,
        "ask_whom": advice.ask_whom,
        "changes": advice.changes,
        "figures": {name: round(value, 3) for name, value in advice.figures.items()},
        "retry_outlook": verdict.retry_outlook,
        "explanation": verdict.explanation,
        "weighed": [[name, round(weight, 3)] for name, weight in verdict.weighed],
        "model": verdict.model,
        "rules": verdict.rules,
        "disputed": verdict.disputed,
        "context": [_context_to_wire(line) for line in verdict.context],
        "log_said": None if verdict.log_verdict is None else _log_said_to_wire(verdict.log_verdict),
    }
