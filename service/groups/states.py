"""The state of a group, computed from its counts. Pure.

new: first seen within the last days. ongoing: older. escalating: the rate of the last hours is credibly above its past.
regressed: failed again after it was resolved. resolved and muted: set by a person; a mute ends when its condition is
met.
"""

import math
import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files

from service.groups.records import GroupFacts, GroupRow, GroupState
from service.times import bounded

_JEFFREYS = 0.5
_SOON = timedelta(minutes=30)
_NEVER = timedelta(days=3650)
_MOST_TERMS = 100_000


@dataclass(frozen=True, slots=True)
class Levels:
    """The contents of states.toml; hours and days as their names say."""

    new_for_h: float
    window_h: float
    past_d: float
    past_min_h: float
    chance: float
    calm: float
    at_least: int


@dataclass(frozen=True, slots=True)
class GroupAssessment:
    """The computed state of a group; `review_at`: when the state may change without new failures."""

    state: GroupState
    recent: int
    expected: float | None
    chance: float | None
    review_at: datetime


@cache
def levels() -> Levels:
    """The packaged levels."""
    read = tomllib.loads(files("service.groups").joinpath("states.toml").read_text(encoding="utf-8"))
    return Levels(new_for_h=read["new_for_h"], **read["escalating"])


def chance_of(recent: int, window_h: float, past: int, past_h: float) -> float:
    """P(at least `recent` failures in `window_h` hours) at the rate of `past` failures in `past_h` hours.

    The past gives the rate a Gamma(past + 1/2, past_h) distribution (Jeffreys' prior), so that the count is negative
    binomial.
    """
    if recent <= 0:
        return 1.0
    shape, quiet = past + _JEFFREYS, past_h / (past_h + window_h)
    if quiet <= 0:
        return 1.0
    log_term = shape * math.log(quiet)
    log_step = math.log1p(-quiet)
    below = 0.0
    for count in range(min(recent, _MOST_TERMS)):
        below += math.exp(log_term)
        log_term += log_step + math.log((shape + count) / (count + 1))
    return min(1.0, max(0.0, 1.0 - below))


def mute_ended(row: GroupRow, now: datetime) -> bool:
    """Whether a group's mute has ended."""
    return (
        (row.muted_until is not None and row.muted_until <= now)
        or (row.muted_failures is not None and row.failures >= row.muted_failures)
        or (row.muted_users is not None and row.users >= row.muted_users)
    )


def assess(facts: GroupFacts, now: datetime, given: Levels) -> GroupAssessment:
    """The current state of a group."""
    row = facts.row
    expected = chance = None
    if facts.past_h >= given.past_min_h:
        expected = (facts.past + _JEFFREYS) / facts.past_h * given.window_h
        chance = chance_of(facts.recent, given.window_h, facts.past, facts.past_h)
    state = _state(facts, now, given, chance)
    review = now + (_SOON if facts.recent else _NEVER)
    if state == "new":
        review = min(review, bounded(row.first_at) + timedelta(hours=given.new_for_h))
    if state == "muted" and row.muted_until is not None:
        review = min(review, row.muted_until)
    if state == "escalating":
        review = min(review, now + _SOON)
    return GroupAssessment(state, facts.recent, expected, chance, max(review, now + timedelta(seconds=1)))


def _state(facts: GroupFacts, now: datetime, given: Levels, chance: float | None) -> GroupState:
    row = facts.row
    came_back = row.resolved_at is not None and row.last_at > row.resolved_at
    if row.state == "resolved" and not came_back:
        return "resolved"
    if row.state == "muted" and not mute_ended(row, now):
        return "muted"
    if came_back:
        return "regressed"
    if chance is not None:
        if facts.recent >= given.at_least and chance < given.chance:
            return "escalating"
        if row.state == "escalating" and facts.recent > 0 and chance < given.calm:
            return "escalating"
    return "new" if now - row.first_at < timedelta(hours=given.new_for_h) else "ongoing"
