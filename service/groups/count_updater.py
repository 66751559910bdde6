"""Keeps the groups up to date: counts new failures and computes the state of each group."""

from collections.abc import Collection

from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.groups.records import GroupRow, NewState
from service.groups.states import GroupAssessment, assess, levels

_TRANSACTIONS = 50  # of one call; the next call counts the rest
SERVICE = "Faultline"
_TEXTS = {
    "escalating": "escalating: {recent} failures in the last {hours:g} hours, about {expected:.1f} were to be expected",
    "regressed": "came back after it was resolved",
    "ongoing": "no longer {before}",
    "new": "no longer {before}",
}


class GroupCountUpdater:
    """Called periodically by workers and servers, in any number of processes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self) -> int:
        """Count new failures in small transactions; returns the number of changed or reviewed groups.

        Raises:
            Unavailable: the database does not answer; completed transactions remain.
        """
        seen = 0
        for _ in range(_TRANSACTIONS):
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
        # A person may act on a group at the same time: what was computed without it must not replace it. Such a group
        # stays due.
        group_ids = work.groups.locked(group_ids) if group_ids else ()
        if not group_ids:
            return
        given, now = levels(), self._clock.now()
        assessed: list[NewState] = []
        for facts in work.groups.facts(group_ids, window_h=given.window_h, past_d=given.past_d):
            found = assess(facts, now, given)
            before = facts.row
            since = before.state_since if found.state == before.state else now
            assessed.append(
                NewState(before.id, found.state, since, found.recent, found.expected, found.chance, found.review_at)
            )
            if found.state != before.state:
                if before.state == "muted":
                    work.groups.change(before.id, muted_until=None, muted_failures=None, muted_users=None)
                if (before.state, found.state) != ("new", "ongoing"):  # the normal course
                    work.groups.note(before.id, SERVICE, "state", describe_change(before, found, given.window_h))
        work.groups.store_states(assessed)


def describe_change(before: GroupRow, found: GroupAssessment, hours: float) -> str:
    """The change of a group's state as text."""
    if before.state == "muted":
        return f"no longer muted: {found.state}"
    return _TEXTS[found.state].format(
        recent=found.recent, hours=hours, expected=found.expected or 0.0, before=before.state
    )
