"""The label of a group: stored with the judgements that it made, so that it can be withdrawn as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.db.session import UnitOfWork
from service.errors import Conflict, NotFound
from service.feedback.records import FeedbackResult, GroupLabel
from service.groups.records import GroupRow


def record(work: UnitOfWork, before: GroupRow, who: str, results: Sequence[FeedbackResult], at: datetime) -> None:
    """Give a group the label of its newest failure.

    Args:
        work: the transaction.
        before: the group before its failures were judged.
        who: the person.
        results: the judgements, that of the newest failure first; at least one.
        at: when the person gave the label.
    """
    row = work.failures.get(results[0].failure_id).row
    work.groups.change(before.id, side=row.side, cause=row.cause, abstained=row.abstained, labelled_at=at)
    given = results[0].label.labels  # the verdict is another one while the label waits for a second person
    side, cause = given.side or row.side, given.cause or row.cause
    work.groups.note(before.id, who, "action", f"labelled {len(results)} failures {side}, {cause}")
    work.group_labels.put(
        GroupLabel(
            before.id,
            at,
            who,
            cause,
            (before.side, before.cause, before.abstained, before.labelled_at),
            [(one.failure_id, one.feedback_id) for one in results],
        )
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """A label that was removed from its group; `latest`: it was the group's current one."""

    label: GroupLabel
    latest: bool


def take_back(work: UnitOfWork, group_id: int, who: str, since: datetime) -> Taken:
    """Remove the label that a person gave a group just now, so that nobody else withdraws it at the same time.

    Raises:
        NotFound: no such group.
        Conflict: this person gave the group no label since that time, or somebody labelled it later.
    """
    work.groups.row(group_id)
    found = next(iter(work.group_labels.of(group_id)), None)
    if found is not None and found.who != who and found.at >= since:
        raise Conflict(f"{found.who} labelled group {group_id} meanwhile: withdraw yours on the page of the group")
    removed = None
    if found is not None and found.who == who and found.at >= since:
        removed = work.group_labels.remove(group_id, found.number)
    if removed is None:
        raise Conflict(f"there is nothing to undo: you have not labelled group {group_id} in the last hour")
    return Taken(*removed)


def take(work: UnitOfWork, group_id: int, number: int) -> Taken:
    """Remove any label of a group.

    Raises:
        NotFound: no such group, or the group has no label of this number (any more).
    """
    work.groups.row(group_id)
    removed = work.group_labels.remove(group_id, number)
    if removed is None:
        raise NotFound(f"group {group_id} has no label {number}, or it was withdrawn")
    return Taken(*removed)


def restore(work: UnitOfWork, taken: Taken, who: str, failures: int) -> None:
    """Give a group the label that it had before, or that of its newest failure if no person had labelled it.

    A group that was labelled again since then keeps that label.

    Args:
        work: the transaction.
        taken: the label that was withdrawn.
        who: the person.
        failures: the number of failures whose judgement was withdrawn and whose verdict did not come from a later one.
    """
    label = taken.label
    group = work.groups.row(label.group_id)
    side, cause = group.side, group.cause
    if taken.latest:
        side, cause, abstained, labelled_at = label.before
        newest = work.failures.rows([group.last_id]).get(group.last_id) if labelled_at is None else None
        if newest is not None:
            side, cause, abstained = newest.side, newest.cause, newest.abstained
        work.groups.change(group.id, side=side, cause=cause, abstained=abstained, labelled_at=labelled_at)
    giver = "" if label.who == who else f", which {label.who} had given"
    text = f"withdrew the label {label.cause} from {failures} failures{giver}"
    work.groups.note(group.id, who, "action", text)
    work.audit_log.append(
        who,
        "group.changed",
        f"group/{group.id}",
        before={"side": group.side, "cause": group.cause},
        after={"side": side, "cause": cause, "did": text},
    )
