"""The advice on a failure in short, as the pages of a failure, of its group and of its owner show it."""

from collections.abc import Mapping
from typing import Any

from service.failures.records import FailureRow
from service.web.pages import display_names
from service.web.pages.failure.to_check import to_check
from service.web.services import Services

_RESUBMIT, _AFTER_A_PAUSE = "Resubmit", " after a pause"  # how decisions and mitigations begin that resubmit
_AFTER_THE_HOLD = " when the hold has ended"
_RELEASED = frozenset({"releasing", "closed"})  # states of an incident that holds no job any more
_INCIDENT_OVER = "The incident is over"
_RESUBMISSION, _RESUBMIT_NOW = "M1", "Resubmit now."


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
    check = to_check(row.status, verdict, abstained=row.abstained)
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
