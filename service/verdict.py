"""verdict/1: what classification and the built-in policy say of one event, as others read it."""

from dataclasses import dataclass
from typing import Any

from classifiers.case import Evidence, Verdict
from classifiers.taxonomy import Decision

SCHEMA = "verdict/1"


@dataclass(frozen=True, slots=True)
class Mitigation:
    """One of the ten mitigations of Gao et al. made concrete. `score` is a posterior probability (0..1)."""

    code: str
    score: float
    text: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a verdict. `resubmit` answers as if the job had opted in; `reasons`: the rules asked."""

    mitigations: tuple[Mitigation, ...]
    decision: Decision
    resubmit: bool
    reasons: tuple[str, ...]
    policy: str
    exclude_nodes: tuple[str, ...] = ()


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
        "retry_outlook": verdict.retry_outlook,
        "explanation": verdict.explanation,
        "weighed": [[name, round(weight, 3)] for name, weight in verdict.weighed],
        "model": verdict.model,
        "rules": verdict.rules,
    }
