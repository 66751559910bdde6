"""The resubmits by which a replayed policy differs from what happened, so that its limits bind in the replay. Pure.

The stored facts count the resubmits that happened. A replayed policy makes others: those that it adds count in the
facts of later decisions, and those that it omits no longer do. The outcome of an added resubmit is not known.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from classifiers.taxonomy import Side
from service.contracts.advice import Outcome, Plan
from service.recommend.facts import ActionRate, Facts, Lineage, PastResubmit, StormState
from service.recommend.policy import Policy
from service.recommend.recent_activity import ClusterActivity, resource_of
from service.resubmissions.records import HeldStorm, RecentResubmit


@dataclass(frozen=True, slots=True)
class ReplayedResubmit:
    """A resubmit that the replayed policy adds or omits."""

    failure_id: int
    lineage: str
    storm_key: str
    cause: str
    user: str | None
    side: Side
    plan: Plan
    at: datetime
    outcome: Outcome | None = None

    def recent(self) -> RecentResubmit:
        """The resubmit as retry-storm limit and rate limits count it."""
        return RecentResubmit(
            self.failure_id, self.cause, resource_of(self.storm_key), self.user, self.at, self.outcome
        )


@dataclass(slots=True)
class ReplayedCluster:
    """Added and omitted resubmits of one cluster, and the keys that the retry-storm limit holds in the replay."""

    added: deque[ReplayedResubmit] = field(default_factory=deque)
    omitted: deque[ReplayedResubmit] = field(default_factory=deque)
    added_to: defaultdict[str, list[ReplayedResubmit]] = field(default_factory=lambda: defaultdict(list))
    omitted_from: defaultdict[str, list[ReplayedResubmit]] = field(default_factory=lambda: defaultdict(list))
    held: dict[str, HeldStorm] = field(default_factory=dict)

    def add(self, one: ReplayedResubmit) -> None:
        """Count a resubmit that did not happen; a failure with a revised verdict counts once."""
        if any(other.failure_id == one.failure_id for other in self.added_to[one.lineage]):
            return
        self.added.append(one)
        self.added_to[one.lineage].append(one)
        self.held.pop(one.storm_key, None)  # it was released as the trial

    def omit(self, one: ReplayedResubmit) -> None:
        """No longer count a resubmit that happened."""
        self.omitted.append(one)
        self.omitted_from[one.lineage].append(one)

    def hold(self, key: str, cluster: str, now: datetime) -> None:
        """The retry-storm limit closes for a key."""
        self.held.setdefault(key, HeldStorm(key, cluster, now, ""))

    def facts(self, stored: Facts, policy: Policy, cause: str, user: str | None) -> Facts:
        """The stored facts with the replayed resubmits in place of those that happened."""
        if not (self.added_to or self.omitted_from or self.held):
            return stored
        self._forget(stored.now - timedelta(minutes=max(policy.storm.window_minutes, policy.limits.rate_minutes)))
        rate_since = stored.now - timedelta(minutes=policy.limits.rate_minutes)
        storm_since = stored.now - timedelta(minutes=policy.storm.window_minutes)
        more, fewer = _activity(self.added, self.held), _activity(self.omitted, {})
        key, resource = stored.storm.key, resource_of(stored.storm.key)
        return replace(
            stored,
            rate=_rate(stored.rate, more.rate(user, rate_since), fewer.rate(user, rate_since)),
            storm=_storm(
                stored.storm,
                more.storm(key, cause, resource, storm_since),
                fewer.storm(key, cause, resource, storm_since),
            ),
            lineage=self._lineage(stored.lineage),
        )

    def _lineage(self, stored: Lineage) -> Lineage:
        added, omitted = self.added_to.get(stored.key, ()), self.omitted_from.get(stored.key, ())
        if not added and not omitted:
            return stored
        resubmits = list(stored.resubmits)
        for one in omitted:
            made = next((past for past in resubmits if past.at >= one.at), None)
            if made is not None:
                resubmits.remove(made)
        resubmits += [PastResubmit(one.at, one.side, one.plan) for one in added]
        return replace(stored, resubmits=tuple(sorted(resubmits, key=lambda past: past.at)))

    def _forget(self, before: datetime) -> None:
        for known in (self.added, self.omitted):
            while known and known[0].at <= before:
                known.popleft()


def _activity(resubmits: Iterable[ReplayedResubmit], held: dict[str, HeldStorm]) -> ClusterActivity:
    return ClusterActivity([one.recent() for one in resubmits], held)


def _rate(stored: ActionRate, more: ActionRate, fewer: ActionRate) -> ActionRate:
    return ActionRate(
        max(stored.cluster + more.cluster - fewer.cluster, 0), max(stored.user + more.user - fewer.user, 0)
    )


def _storm(stored: StormState, more: StormState, fewer: StormState) -> StormState:
    return replace(
        stored,
        resubmits=max(stored.resubmits + more.resubmits - fewer.resubmits, 0),
        helped=max(stored.helped - fewer.helped, 0),
        failed=max(stored.failed - fewer.failed, 0),
        held_since=stored.held_since or more.held_since,
    )
