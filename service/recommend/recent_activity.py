"""Recent automatic resubmits of a cluster, as the retry-storm limit and the rate limits count them. Pure.

The service counts stored resubmits; the replay of another policy counts the resubmits that it would make.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from service.contracts.advice import FAILED, HELPED
from service.recommend.facts import ActionRate, StormState
from service.recommend.policy_settings import Storm
from service.resubmissions.records import HeldStorm, RecentResubmit

_NO_RATE = ActionRate()


@dataclass(frozen=True, slots=True)
class ClusterActivity:
    """Recent automatic resubmits on one cluster, and the keys that its retry-storm limit holds."""

    resubmits: Sequence[RecentResubmit]
    storms: Mapping[str, HeldStorm]

    def storm(self, key: str, cause: str, resource: str, since: datetime) -> StormState:
        """The state of one key of the retry-storm limit."""
        held = self.storms.get(key)
        if held is None and not self.resubmits:
            return StormState(key=key)
        start = since if held is None else held.held_since
        counted = [one for one in self.resubmits if one.cause == cause and one.resource == resource and one.at > start]
        return StormState(
            key=key,
            resubmits=len(counted),
            helped=sum(one.outcome in HELPED for one in counted),
            failed=sum(one.outcome in FAILED for one in counted),
            held_since=None if held is None else held.held_since,
            trial=held is not None and held.trial is not None,
        )

    def rate(self, user: str | None, since: datetime) -> ActionRate:
        """The number of resubmits on the cluster, and of one user on it."""
        if not self.resubmits:
            return _NO_RATE
        recent = [one for one in self.resubmits if one.at > since]
        return ActionRate(len(recent), sum(one.user == user for one in recent) if user is not None else 0)


def storm_key(cluster: str, cause: str, resource: str) -> str:
    """The key by which the retry-storm limit counts."""
    return f"{cause}|{cluster}|{resource}"


def resource_of(key: str) -> str:
    """The shared resource of a key of the retry-storm limit; empty without one."""
    return key.split("|", 2)[2] if key.count("|") >= 2 else ""  # noqa: PLR2004 - the parts of a key


LimitState = Literal["calm", "many", "failing", "held", "trial"]


def why_held(storm: StormState, settings: Storm) -> str:
    """Why a key is held from now on, in words."""
    if storm.resubmits >= settings.most:
        return f"{storm.resubmits} resubmits in {settings.window_minutes:g} minutes"
    return f"{storm.failed} of {storm.failed + storm.helped} resubmits failed again"


def limit_state(state: StormState, settings: Storm, now: datetime) -> LimitState:
    """The state of the limit for a resubmit of this key.

    calm: the resubmit may start. many, failing: the key is held from now on (the caller sets `held_since` to `now`).
    held: the key is held. trial: it was held long enough, and this resubmit may start as a trial (the caller sets
    `trial`); if the trial succeeds the state is cleared, otherwise `held_since` is set again.
    """
    if state.held_since is not None:
        rested = now - state.held_since >= timedelta(minutes=settings.half_open_minutes)
        return "trial" if rested and not state.trial else "held"
    if state.resubmits >= settings.most:
        return "many"
    ended = state.helped + state.failed
    # If all of them failed the key is held whatever the share; if none failed it is not, even for a share of 0.
    if ended >= settings.at_least and state.failed and state.failed >= settings.failing_share * ended:
        return "failing"
    return "calm"
