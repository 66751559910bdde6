"""Advice on one event without history: for commands, corrections by people and stored verdicts."""

from datetime import datetime

from classifiers.contracts import Verdict
from service.clock import Clock
from service.contracts.advice import Advice
from service.contracts.event import JobCompletion
from service.recommend import event_facts
from service.recommend.advise import advise
from service.recommend.policy import Policy


def advise_without_history(verdict: Verdict, event: JobCompletion, policy: Policy, now: datetime) -> Advice:
    """The advice on one event, by the policy of its cluster, queue and team.

    Args:
        verdict: the verdict on the event.
        event: the event.
        policy: the policy of the whole service.
        now: the time of the advice.
    """
    effective = policy.effective(cluster=event.cluster, queue=event.queue, team=event.team)
    return advise(verdict, event.facts(), event_facts.without_history(event, now, effective), effective)


class Advisor:
    """Gives advice without history, by one policy."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock

    def __call__(self, verdict: Verdict, event: JobCompletion) -> Advice:
        """The advice for this verdict and event."""
        return advise_without_history(verdict, event, self._policy, self._clock.now())
