"""The advice on a failure in short, as the pages of a failure, of its group and of its owner show it."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.failures.records import FailureRow
from service.web.pages import display_names
from service.web.pages.failure.questions import began_with_event
from service.web.services import Services

_RESUBMIT, _AFTER_A_PAUSE = "Resubmit", " after a pause"  # how decisions and mitigations begin that resubmit
_AFTER_THE_HOLD = " when the hold has ended"
_RELEASED = frozenset({"releasing", "closed"})  # states of an incident that holds no job any more
_INCIDENT_OVER = "The incident is over"
_RESUBMISSION, _RESUBMIT_NOW = "M1", "Resubmit now."
_NODES_NAMED = 3
_CANCELLED = "cancelled"
_EVENT = "Look at the node event that is first in the evidence: does the log show that it stopped this job?"


def short_advice(services: Services, row: FailureRow, verdict: Mapping[str, Any] | None) -> tuple[str, str]:
    """The advice in short, without its full stop, and what else there is to say; both may be empty.

    The verdict of a job that an incident held stays as it was; once the incident is over, the advice is to go on.
    """
    stored = verdict or {}
    found = stored.get("mitigations") or ()
    held_by = stored.get("held_by")
    if row.decision == "hold" and held_by == "incident" and _is_over(services, row.id):
        texts = {str(one["code"]): str(one["text"]) for one in found}
        return _INCIDENT_OVER, texts.get(_RESUBMISSION, _RESUBMIT_NOW).replace(_AFTER_THE_HOLD, " now", 1)
    check = _to_check(row.status, verdict, abstained=row.abstained)
    text = check or (str(found[0]["text"]) if found else "")
    return advice_sentences(display_names.decision(row.decision, status=row.status, held_by=held_by), text)


def _is_over(services: Services, failure_id: int) -> bool:
    with services.reading() as reading:
        incidents = reading.incidents.of_failure(failure_id)
    return bool(incidents) and all(one.state in _RELEASED for one in incidents)


def advice_sentences(decision: str, text: str) -> tuple[str, str]:
    """The advice in short, without its full stop, and what else there is to say.

    Args:
        decision: the decision in words, such as "Resubmit now".
        text: the likeliest mitigation; its first sentence becomes one with the decision if both say how to resubmit.
    """
    first, stop, others = text.partition(". ")
    first = first if stop else first.removesuffix(".")
    if first == decision:
        return decision, others
    if not (decision.startswith(_RESUBMIT) and first.startswith(_RESUBMIT)):
        return decision, text
    return decision + first.removeprefix(_RESUBMIT).removeprefix(_AFTER_A_PAUSE), others


def _to_check(status: str, verdict: Mapping[str, Any] | None, *, abstained: bool) -> str | None:
    """What to look at where the advice is no action, in sentences; None where it says what to do."""
    if status == _CANCELLED:
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
    named = ", ".join(nodes[:_NODES_NAMED]) + (f" and {len(nodes) - _NODES_NAMED} more" if nodes[_NODES_NAMED:] else "")
    return f"Compare it with the events of {named}."


def _missing(missing: Sequence[str]) -> str:
    return f"This was not available and could decide it: {missing[0]}." if missing else ""
