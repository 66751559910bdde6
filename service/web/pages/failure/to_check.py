"""What a person should look at where the advice is no action: an undecided verdict, or a job that was cancelled."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.web.pages.failure.questions import began_with_event

NODES_NAMED = 3
CANCELLED = "cancelled"
_EVENT = "Look at the node event that is first in the evidence: does the log show that it stopped this job?"


def to_check(status: str, verdict: Mapping[str, Any] | None, *, abstained: bool) -> str | None:
    """What to look at, in sentences; None where the advice says what to do."""
    if status == CANCELLED:
        return (
            "The job was cancelled, which says nothing about its code. Find out who or what cancelled it, and why: "
            "the scheduler's record often names the user."
        )
    if not abstained:
        return None
    evidence = (verdict or {}).get("evidence") or ()
    beginning = [_EVENT] if began_with_event(verdict or {}) else [_first(evidence), _nodes(evidence)]
    found = [*beginning, _missing((verdict or {}).get("missing") or ())]
    return " ".join(part for part in found if part)


def _first(evidence: Sequence[Mapping[str, Any]]) -> str:
    if any(line.get("role") == "initiating" for line in evidence):
        return (
            "Look at the first line of the evidence, and at the log around it: "
            "does it come from the job, or from the platform?"
        )
    return "Look at the end of the log, and ask the owner of the job what was expected."


def _nodes(evidence: Sequence[Mapping[str, Any]]) -> str:
    nodes = sorted({str(line["node"]) for line in evidence if line.get("stream") == "node" and line.get("node")})
    if not nodes:
        return "Did other jobs fail on the same nodes at that time?"
    named = ", ".join(nodes[:NODES_NAMED]) + (f" and {len(nodes) - NODES_NAMED} more" if nodes[NODES_NAMED:] else "")
    return f"Compare it with the events of {named}."


def _missing(missing: Sequence[str]) -> str:
    return f"This was not available and could decide it: {missing[0]}." if missing else ""
