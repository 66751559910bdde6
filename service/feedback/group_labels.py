"""The label of a group: stored with the judgements that it made, so that it can be withdrawn as a whole."""

from collections.abc import Sequence
from datetime import datetime

from service.db.session import ReadSession, UnitOfWork
from service.errors import Conflict, NotFound
from service.feedback.records import FeedbackResult, GroupLabel
from service.groups.records import GroupRow


def record(work: UnitOfWork, before: GroupRow, actor: str, results: Sequence[FeedbackResult], at: datetime) -> None:
    """Give a group the label of its newest failure.

    Args:
        work: the transaction.
        before: the group before its failures were judged.
        actor: the person.
        results: the judgements, that of the newest failure first; at least one.
        at: when the person gave the label.
    """
    row = work.failures.get(results[0].failure_id).row
    work.groups.change(before.id, side=row.side, cause=row.cause, abstained=row.abstained, labelled_at=at)
    given = results[0].label.labels  # the verdict is another one while the label waits for a second person
    side, cause = given.side or row.side, given.cause or row.cause
    work.groups.note(before.id, actor, "action", f"labelled {len(results)} failures {side}, {cause}")
    work.group_labels.put(
        GroupLabel(
            before.id,
            at,
            actor,
            cause,
            (before.side, before.cause, before.abstained, before.labelled_at),
            [(one.failure_id, one.feedback_id) for one in results],
        )
    )


def own_latest(reading: ReadSession, group_id: int, actor: str, since: datetime) -> GroupLabel:
    """The label that a person gave a group just now.

    Raises:
        NotFound: no such group.
        Conflict: this person gave the group no label since that time, or somebody labelled it later.
    """
    reading.groups.row(group_id)
    found = next(iter(reading.group_labels.of(group_id)), None)
    if found is None or found.at < since:
        raise Conflict(f"there is nothing to undo: you have not labelled group {group_id} in the last hour")
    if found.who != actor:
        raise Conflict(f"{found.who} labelled group {group_id} meanwhile: withdraw yours on the page of the group")
    return found


def find(reading: ReadSession, group_id: int, number: int) -> GroupLabel:
    """A label of a group.

    Raises:
        NotFound: no such group, or the group has no label of this number (any more).
    """
    reading.groups.row(group_id)
    found = next((one for one in reading.group_labels.of(group_id) if one.number == number), None)
    if found is None:
        raise _gone(group_id, number)
    return found


def hold(work: UnitOfWork, label: GroupLabel) -> None:
    """Let nobody else withdraw judgements of a group's label until the transaction ends.

    Raises:
        NotFound: the label was withdrawn.
    """
    if not work.group_labels.hold(label.group_id, label.number):
        raise _gone(label.group_id, label.number)


def remove(work: UnitOfWork, label: GroupLabel, actor: str, failures: int) -> None:
    """Remove a label of a group whose judgements were withdrawn: the last step, so that a kill before it loses nothing.

    The group gets the label that it had before, or that of its newest failure if no person had labelled it.

    A group that was labelled again since then keeps that label.

    Args:
        work: the transaction.
        label: the label.
        actor: the person.
        failures: the number of failures whose judgement was withdrawn and whose verdict did not come from a later one.

    Raises:
        NotFound: the label was withdrawn meanwhile.
    """
    removed = work.group_labels.remove(label.group_id, label.number)
    if removed is None:
        raise _gone(label.group_id, label.number)
    label, latest = removed
    group = work.groups.row(label.group_id)
    side, cause = group.side, group.cause
    if latest:
        side, cause, abstained, labelled_at = label.before
        newest = work.failures.rows([group.last_id]).get(group.last_id) if labelled_at is None else None
        if newest is not None:
            side, cause, abstained = newest.side, newest.cause, newest.abstained
        work.groups.change(group.id, side=side, cause=cause, abstained=abstained, labelled_at=labelled_at)
    giver = "" if label.who == actor else f", which {label.who} had given"
    text = f"withdrew the label {label.cause} from {failures} failures{giver}"
    work.groups.note(group.id, actor, "action", text)
    work.audit_log.append(
        actor,
        "group.changed",
        f"group/{group.id}",
        before={"side": group.side, "cause": group.cause},
        after={"side": side, "cause": cause, "did": text},
    )


def _gone(group_id: int, number: int) -> NotFound:
    return NotFound(f"group {group_id} has no label {number}, or it was withdrawn")
