"""A verdict with its advice, as it is stored and sent."""

from datetime import datetime
from typing import Any

from classifiers.contracts import Verdict
from service.automation.request_creation import AdvisedFailure
from service.contracts.event import JobCompletion
from service.contracts.verdict_wire import wire_of
from service.recommend.advisor import advise_without_history
from service.recommend.policy import Policy


def advised_wire(
    event: JobCompletion,
    verdict: Verdict,
    advised: AdvisedFailure | None,
    *,
    event_id: str,
    policy: Policy,
    now: datetime,
) -> dict[str, Any]:
    """The verdict/1 of an event.

    Args:
        event: the event.
        verdict: the verdict on it.
        advised: its advice; None: the advice without history is made here.
        event_id: the id under which the event is known.
        policy: the policy of advice without history.
        now: the current time.
    """
    advice = advise_without_history(verdict, event, policy, now) if advised is None else advised.advice
    return wire_of(
        verdict, advice, event_id=event_id, cluster=event.cluster, job_id=event.job_id, attempt=event.attempt
    )
