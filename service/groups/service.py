"""Actions of people on groups: each one checks, changes and records the action in one transaction."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, get_args
from urllib.parse import urlsplit

from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.errors import Conflict, invalid
from service.fixes import service as fix_service
from service.groups.records import GroupRow, Mute, Split, SplitField

LONGEST_COMMENT = 4_000
MOST_PRINTS = 50  # fingerprints per group
_MOVED_AT_ONCE = 40  # transactions of 500 failures that a split moves within the request


class GroupService:
    """The actions on groups. Every method takes the person who acts, and raises NotFound for an unknown group."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def resolve(self, group_ids: Sequence[int], actor: str, fixed_by: str | None = None) -> None:
        """Mark groups as resolved; the next failure makes a group regressed.

        Args:
            group_ids: the groups.
            actor: the person who acts.
            fixed_by: the mitigation, M1 to M10; it counts once for each group, for its newest failure.

        Raises:
            InvalidInput: `fixed_by` is not a mitigation.
        """
        now = self._clock.now()
        if fixed_by is not None:
            fix_service.check(fixed_by)
        with self._store.unit_of_work() as work:
            for group_id in group_ids:
                row = _live(work, group_id)
                work.groups.change(group_id, state="resolved", state_since=now, resolved_at=now, **_NO_MUTE)
                how = ""
                if fixed_by is not None and fixed_by != fix_service.NOTHING:
                    how = f" by {fixed_by} {fix_service.title(fixed_by)}"
                    if work.failures.rows([row.last_id]):  # retention may have removed the failure
                        fix_service.report_within(work, row.last_id, actor, fixed_by)
                _noted(work, row, actor, f"resolved it{how}")

    def reopen(self, group_ids: Sequence[int], actor: str) -> None:
        """Reopen groups that are resolved, regressed or muted."""
        now = self._clock.now()
        with self._store.unit_of_work() as work:
            for group_id in group_ids:
                row = _live(work, group_id)
                values: dict[str, Any] = {"state": "ongoing", "state_since": now, "resolved_at": None, "review_at": now}
                work.groups.change(group_id, **values, **_NO_MUTE)
                _noted(work, row, actor, "opened it again")

    def mute(
        self,
        group_ids: Sequence[int],
        actor: str,
        *,
        until: datetime | None = None,
        failures: int | None = None,
        users: int | None = None,
        for_me: bool = False,
    ) -> None:
        """Mute groups until a time, a number of further failures or of further users, whichever comes first.

        Raises:
            InvalidInput: no condition (for everybody), a condition that is met already, or a count below 1.
        """
        now = self._clock.now()
        if until is not None and until <= now:
            raise invalid("until", "a time in the future", until.isoformat())
        for name, count in (("failures", failures), ("users", users)):
            if count is not None and not 1 <= count <= 10**9:
                raise invalid(name, "a whole number from 1 to 1,000,000,000", str(count))
        if until is None and failures is None and users is None and not for_me:
            raise invalid("until", "a time, a number of failures or a number of users at which the mute ends", "none")
        with self._store.unit_of_work() as work:
            for group_id in group_ids:
                row = _live(work, group_id)
                mute = Mute(
                    until,
                    None if failures is None else row.failures + failures,
                    None if users is None else row.users + users,
                )
                if for_me:
                    work.groups.mute_for(actor, group_id, mute)
                    continue
                work.groups.change(
                    group_id,
                    state="muted",
                    state_since=now,
                    muted_until=mute.until,
                    muted_failures=mute.failures,
                    muted_users=mute.users,
                    review_at=now,
                )
                _noted(work, row, actor, f"muted it {_until(until, failures, users)}")

    def unmute_for_me(self, group_ids: Sequence[int], actor: str) -> None:
        """End this person's own mute."""
        with self._store.unit_of_work() as work:
            for group_id in group_ids:
                _live(work, group_id)
                work.groups.mute_for(actor, group_id, None)

    def assign(self, group_ids: Sequence[int], actor: str, to: str | None) -> None:
        """Assign groups to a person, or with None to nobody."""
        name = (to or "").strip()[:200] or None
        with self._store.unit_of_work() as work:
            for group_id in group_ids:
                row = _live(work, group_id)
                work.groups.change(group_id, assignee=name)
                _noted(work, row, actor, f"gave it to {name}" if name else "gave it to nobody")

    def link(self, group_id: int, actor: str, ticket: str | None) -> None:
        """Link a group to a ticket; None or empty removes the link.

        Raises:
            InvalidInput: not an http or https address of at most 500 characters.
        """
        address = (ticket or "").strip()
        if address:
            try:
                parts = urlsplit(address)
                good = parts.scheme in {"http", "https"} and bool(parts.netloc) and parts.username is None
            except ValueError:
                good = False
            if not good or len(address) > 500 or not address.isprintable() or " " in address:  # noqa: PLR2004 - explained below
                raise invalid("ticket", "an http or https address of at most 500 characters", address)
        with self._store.unit_of_work() as work:
            row = _live(work, group_id)
            work.groups.change(group_id, ticket=address or None)
            _noted(work, row, actor, f"linked it to {address}" if address else "removed the link")

    def comment(self, group_id: int, actor: str, text: str) -> None:
        """Comment on a group.

        Raises:
            InvalidInput: an empty comment, or more than 4,000 characters.
        """
        if not text.strip() or len(text) > LONGEST_COMMENT:
            raise invalid("text", f"1 to {LONGEST_COMMENT:,} characters", f"{len(text)} characters")
        with self._store.unit_of_work() as work:
            row = _live(work, group_id)
            work.groups.note(row.id, actor, "comment", text.strip())

    def merge(self, group_id: int, others: Sequence[int], actor: str) -> None:
        """Merge other groups into this one, with their later failures.

        Raises:
            InvalidInput: nothing to merge, or more fingerprints than a group may hold.
        """
        wanted = [other for other in dict.fromkeys(others) if other != group_id]
        if not wanted:
            raise invalid("groups", "one or more other groups", "none")
        now = self._clock.now()
        with self._store.unit_of_work() as work:
            work.groups.lock_moves()  # two groups merged into each other at the same time would both disappear
            target = _live(work, group_id)
            held = len(work.groups.get(group_id).prints)
            for other in wanted:
                row = _live(work, other)
                prints = [one.fingerprint for one in work.groups.get(other).prints]
                held += len(prints)
                if held > MOST_PRINTS:
                    raise invalid("groups", f"groups of at most {MOST_PRINTS} fingerprints together", str(held))
                work.groups.move(prints, group_id)
                work.groups.change(other, merged_into=group_id)
                _noted(work, row, actor, f"merged it into group {group_id}")
                _noted(work, target, actor, f"merged group {other} into it: {row.title[:200]}")
            work.groups.change(group_id, review_at=now, state=target.state)

    def take_out(self, group_id: int, fingerprint: str, actor: str) -> int:
        """Undo a merge: return a fingerprint to its own group; returns that group.

        Raises:
            Conflict: the group does not have this fingerprint, or was created by it.
        """
        with self._store.unit_of_work() as work:
            work.groups.lock_moves()
            row = _live(work, group_id)
            found = next((one for one in work.groups.get(group_id).prints if one.fingerprint == fingerprint), None)
            if found is None or found.own_group == group_id:
                raise Conflict(f"group {group_id} has no fingerprint {fingerprint[:40]} that was merged into it")
            work.groups.change(found.own_group, merged_into=None, review_at=self._clock.now())
            work.groups.move([fingerprint], found.own_group)
            _noted(work, row, actor, f"took group {found.own_group} out of it")
            work.groups.note(found.own_group, actor, "action", f"took it out of group {group_id}")
        return found.own_group

    def split(self, group_id: int, field: str, value: str, actor: str) -> tuple[Split, ...]:
        """Split the failures whose `field` is `value` off into their own group, with later ones.

        Raises:
            InvalidInput: not one of the five fields, or no value.
            Conflict: the group is split this way already, and all its failures are moved.
        """
        if field not in get_args(SplitField):
            raise invalid("field", "one of " + ", ".join(get_args(SplitField)), field)
        if not value.strip() or len(value) > 200:  # noqa: PLR2004 - explained here
            raise invalid("value", "1 to 200 characters", value)
        with self._store.unit_of_work() as work:
            row = _live(work, group_id)
            detail = work.groups.get(group_id)
            earlier = tuple(one for one in detail.splits if (one.field, one.value) == (field, value))
            splits = earlier or tuple(work.groups.split(one.fingerprint, field, value, actor) for one in detail.prints)
            if not earlier:
                _noted(work, row, actor, f"split off failures with {field} {value}")
        moved = sum(self._move(split) for split in splits)  # of an earlier split: what an interruption left
        if earlier and not moved:
            raise Conflict(f"failures with {field} {value[:80]} were split off group {group_id} before")
        return splits

    def _move(self, split: Split) -> int:
        """Move failures to a group that was split off; returns their number."""
        total = 0
        for _ in range(_MOVED_AT_ONCE):
            with self._store.unit_of_work() as work:
                moved = work.groups.regroup(split)
            if not moved:
                break
            total += moved
        return total


_NO_MUTE: dict[str, Any] = {"muted_until": None, "muted_failures": None, "muted_users": None}


def _noted(work: UnitOfWork, before: GroupRow, actor: str, text: str) -> None:
    """Record an action in the group's history and in the audit log."""
    work.groups.note(before.id, actor, "action", text)
    after = work.groups.row(before.id)
    states = [
        {"state": row.state, "assignee": row.assignee, "ticket": row.ticket, "merged_into": row.merged_into}
        for row in (before, after)
    ]
    work.audit_log.append(
        actor, "group.changed", f"group/{before.id}", before=states[0], after={**states[1], "did": text}
    )


def _live(work: UnitOfWork, group_id: int) -> GroupRow:
    row = work.groups.row(group_id)
    if row.merged_into is not None:
        raise Conflict(f"group {group_id} was merged into group {row.merged_into}: act on that one")
    return row


def _until(until: datetime | None, failures: int | None, users: int | None) -> str:
    parts = [
        *([f"until {until:%Y-%m-%d %H:%M} UTC"] if until else []),
        *([f"for {failures:,} more failures"] if failures else []),
        *([f"until {users:,} more users are hit"] if users else []),
    ]
    return " or ".join(parts)
