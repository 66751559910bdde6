"""Advice for a verdict that a person changed: as for one event without history."""

from classifiers.contracts import Verdict
from service.clock import Clock
from service.contracts.advice import Advice
from service.contracts.event import JobCompletion
from service.recommend import event_facts
from service.recommend.advise import advise
from service.recommend.policy import Policy


class Advisor:
    """Applies the policy."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock

    def __call__(self, verdict: Verdict, event: JobCompletion) -> Advice:
        """The advice for this verdict and event."""
        policy = self._policy.effective(cluster=event.cluster, queue=event.queue, team=event.team)
        return advise(verdict, event.facts(), event_facts.without_history(event, self._clock.now(), policy), policy)
