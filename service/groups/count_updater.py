"""Keeps the groups up to date: counts what was stored since, and says which state each group is in now."""

import logging
from collections.abc import Collection

from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.groups.records import GroupRow, NewState
from service.groups.states import Judged, judge, levels

_log = logging.getLogger(__name__)
_BITES = 50  # a call; what is left is folded by the next one
SERVICE = "Faultline"
_SAID = {
    "escalating": "escalating: {recent} failures in the last {hours:g} hours, about {expected:.1f} were to be expected",
    "regressed": "came back after it was resolved",
    "ongoing": "no longer {before}",
    "new": "no longer {before}",
}


class Fold:
    """Called now and then beside the consumer or the server; any number of processes may."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self) -> int:
        """Fold what there is, a bite a transaction; how many groups changed or were looked at.

        Raises:
            Unavailable: the database does not answer; what was folded stays so.
        """
        seen = 0
        for _ in range(_BITES):
            with self._store.unit_of_work() as work:
                changed = work.groups.fold()
                if changed is None:
                    changed = work.groups.due()
                    self._judge(work, changed)
                    return seen + len(changed)
                self._judge(work, changed)
            seen += len(changed)
        return seen

    def _judge(self, work: UnitOfWork, group_ids: Collection[int]) -> None:
        if not group_ids:
            return
        given, now = levels(), self._clock.now()
        judged: list[NewState] = []
        for facts in work.groups.facts(group_ids, window_h=given.window_h, past_d=given.past_d):
            found = judge(facts, now, given)
            before = facts.row
            since = before.state_since if found.state == before.state else now
            judged.append(
                NewState(before.id, found.state, since, found.recent, found.expected, found.chance, found.review_at)
            )
            if found.state != before.state:
                if before.state == "muted":
                    work.groups.change(before.id, muted_until=None, muted_failures=None, muted_users=None)
                if (before.state, found.state) != ("new", "ongoing"):  # that is the course of things
                    work.groups.note(before.id, SERVICE, "state", said(before, found, given.window_h))
        work.groups.judged(judged)


def said(before: GroupRow, found: Judged, hours: float) -> str:
    """What became of a group, in words."""
    if before.state == "muted":
        return f"no longer muted: {found.state}"
    return _SAID[found.state].format(
        recent=found.recent, hours=hours, expected=found.expected or 0.0, before=before.state
    )
