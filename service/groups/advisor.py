"""Advice for a verdict that a person changed: as for one event without history."""

from classifiers.case import Verdict
from service.clock import Clock
from service.events import JobCompletion
from service.recommend import gather
from service.recommend.advise import advise
from service.recommend.policy import Policy
from service.verdict import Advice


class Advisor:
    """The policy's advice."""

    def __init__(self, policy: Policy, clock: Clock) -> None:
        self._policy = policy
        self._clock = clock

    def __call__(self, verdict: Verdict, event: JobCompletion) -> Advice:
        """The advice for this verdict of this event."""
        policy = self._policy.effective(cluster=event.cluster, queue=event.queue, team=event.team)
        return advise(verdict, event.facts(), gather.alone(event, self._clock.now(), policy), policy)
