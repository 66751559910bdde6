"""The states of the retry-storm limit, as pure functions of counts."""

from datetime import datetime, timedelta
from typing import Literal

from service.recommend.facts import StormState
from service.recommend.policy_settings import Storm

LimitState = Literal["calm", "many", "failing", "held", "trial"]


def assess(state: StormState, settings: Storm, now: datetime) -> LimitState:
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
