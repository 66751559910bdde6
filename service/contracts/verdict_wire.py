"""Writes verdict/1 from a verdict and the advice on it, without a model in between: that takes a third of the time.

`service.contracts.verdict.VerdictBody` is the schema; the keys have its order, and numbers are rounded for storage.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from classifiers.contracts import ChainStep, ContextLine, Evidence, LogVerdict, Suspect, Verdict
from service.contracts.advice import Action, Advice
from service.times import iso_text

SCHEMA: Final = "verdict/1"


def wire_of(
    verdict: Verdict, advice: Advice, *, event_id: str, cluster: str, job_id: str, attempt: int | None
) -> dict[str, Any]:
    """The verdict/1 object of one failure as JSON types; times as RFC 3339 text with a numeric offset."""
    progress = verdict.progress
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
        "evidence": [_evidence(line) for line in verdict.evidence],
        "suspect": _suspect(verdict.suspect),
        "missing": list(verdict.missing),
        "progress": None
        if progress is None
        else {"step": progress.step, "checkpoint": progress.checkpoint, "at": iso_text(progress.at)},
        "fingerprint": verdict.fingerprint,
        "mitigations": [
            {"code": one.code, "score": float(round(one.score, 4)), "text": one.text} for one in advice.mitigations
        ],
        "decision": advice.decision,
        "resubmit": advice.resubmit,
        "reasons": list(advice.reasons),
        "exclude_nodes": list(advice.exclude_nodes),
        "policy": advice.policy,
        "rule": advice.rule,
        "mode": advice.mode,
        "action": _action(advice.action),
        "incident": advice.incident,
        "held_by": advice.held_by,
        "ask_whom": advice.ask_whom,
        "changes": json_types(advice.changes),
        "figures": {name: float(round(value, 3)) for name, value in advice.figures.items()},
        "retry_outlook": verdict.retry_outlook,
        "explanation": verdict.explanation,
        "weighed": [[name, float(round(weight, 3))] for name, weight in verdict.weighed],
        "model": verdict.model,
        "rules": verdict.rules,
        "disputed": verdict.disputed,
        "uncorroborated": verdict.uncorroborated,
        "context": [_context(line) for line in verdict.context],
        "own_frame": verdict.own_frame,
        "chain": [_step(step) for step in verdict.chain],
        "log_said": _log_verdict(verdict.log_verdict),
    }


def _evidence(line: Evidence) -> dict[str, Any]:
    return {
        "rank": line.rank,
        "node": line.node,
        "stream": line.stream,
        "line": line.line,
        "text": line.text,
        "role": line.role,
        "signature": line.signature,
        "note": line.note,
    }


def _suspect(suspect: Suspect | None) -> dict[str, Any] | None:
    return None if suspect is None else {"rank": suspect.rank, "node": suspect.node, "gpu": suspect.gpu}


def _action(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    return {
        "action": action.kind,
        "plan": action.plan,
        "exclude_nodes": list(action.exclude_nodes),
        "resume_from": action.resume_from,
        "changes": json_types(action.changes),
        "not_before": iso_text(action.not_before),
        "ask_scheduler": action.ask_scheduler,
    }


def _context(line: ContextLine) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "text": line.text,
        "side": line.side,
        "weight": float(round(line.weight, 3)),
        "cause": line.cause,
        "node": line.node,
        "at": iso_text(line.at),
        "gpu": line.gpu,
    }


def _step(step: ChainStep) -> dict[str, Any]:
    return {
        "kind": step.kind,
        "text": step.text,
        "title": step.title,
        "rank": step.rank,
        "node": step.node,
        "ranks": step.ranks,
        "lines": step.lines,
        "after_s": step.after_s,
    }


def _log_verdict(log: LogVerdict | None) -> dict[str, Any] | None:
    if log is None:
        return None
    return {
        "side": log.side,
        "cause": log.cause,
        "cause_top": list(log.cause_top),
        "confidence": float(round(log.confidence, 4)),
        "abstained": log.abstained,
        "retry_outlook": log.retry_outlook,
        "explanation": log.explanation,
        "suspect": _suspect(log.suspect),
        "uncorroborated": log.uncorroborated,
    }


def json_types(value: Any) -> Any:
    """The value with lists for tuples, and times as RFC 3339 text."""
    if isinstance(value, Mapping):
        return {name: json_types(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_types(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value
