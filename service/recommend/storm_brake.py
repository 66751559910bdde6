"""The storm brake's states, as pure functions of what was counted."""

from datetime import datetime, timedelta
from typing import Literal

from service.recommend.facts import StormState
from service.recommend.policy_settings import Storm

BrakeState = Literal["calm", "many", "failing", "held", "trial"]


def assess(state: StormState, settings: Storm, now: datetime) -> BrakeState:
    """What a resubmit of this key meets.

    calm: go. many, failing: the brake closes with this one (whoever keeps the state sets `held_since` to `now`). held:
    it is closed. trial: it has been closed for long enough, this one may go to see whether it helps (set `trial`); when
    that one ends well the state is cleared, when not `held_since` starts anew.
    """
    if state.held_since is not None:
        rested = now - state.held_since >= timedelta(minutes=settings.half_open_minutes)
        return "trial" if rested and not state.trial else "held"
    if state.resubmits >= settings.most:
        return "many"
    ended = state.helped + state.failed
    # All of them having failed is a storm whatever the share context for; none is not, even if that is 0.
    if ended >= settings.at_least and state.failed and state.failed >= settings.failing_share * ended:
        return "failing"
    return "calm"
