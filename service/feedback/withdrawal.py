"""Withdrawal of judgements and of a person's labels: they no longer count.

The verdicts before them are current again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.contracts.verdict import stored_verdict
from service.db.session import Store, UnitOfWork
from service.deliveries.records import verdict_message
from service.errors import Conflict, NotFound
from service.failures.records import FailureDetail, Source, VerdictVersion
from service.failures.revised_verdict import Revised, facts
from service.feedback import group_labels
from service.feedback.records import JUDGING, StoredFeedback


def withdraw_judgement(
    work: UnitOfWork, failure_id: int, feedback_id: int, actor: str, revised: Revised | None
) -> bool:
    """Withdraw a judgement in a transaction; later judgements of the failure, and the verdict from them, stay.

    Args:
        work: the transaction.
        failure_id: the failure.
        feedback_id: the number of the judgement.
        actor: who withdraws it.
        revised: called with a verdict that is current again; None: not called.

    Returns:
        False if the failure was judged again since then.

    Raises:
        NotFound: the failure is not stored any more.
        Conflict: the judgement was withdrawn before, or the label is protected.
    """
    work.failures.lock([failure_id])
    detail = work.failures.get(failure_id)
    judged = next((one for one in _judgements(work, failure_id) if one.id == feedback_id), None)
    if judged is None:
        raise Conflict(f"the judgement of failure {failure_id} was withdrawn meanwhile")
    label = work.feedback.label(failure_id)
    if label is not None and label.golden:
        raise Conflict(f"the label of failure {failure_id} is part of the golden set")
    work.feedback.withdraw_one(failure_id, feedback_id, actor)
    last = all(one.id < feedback_id for one in _judgements(work, failure_id))
    version = _restore(work, detail, revised)
    work.audit_log.append(
        actor,
        "label.withdrawn",
        f"failure/{failure_id}",
        before={"version": detail.row.version} | ({} if judged.who == actor else {"who": judged.who}),
        after={"version": version},
    )
    return last


def _judgements(work: UnitOfWork, failure_id: int) -> list[StoredFeedback]:
    return [one for one in work.feedback.of(failure_id) if one.kind in JUDGING]


def _restore(work: UnitOfWork, detail: FailureDetail, revised: Revised | None) -> int:
    """Make the verdict current again that follows from what was not withdrawn; returns the version of the verdict."""
    row = detail.row
    if row.source != "person":
        return row.version  # the judgement waited for a second person, or the machine judged again
    wanted = _wanted(detail, _judgements(work, row.id))
    if wanted is None or wanted.body is None or wanted.version == row.version:
        return row.version
    if wanted.source == row.source and wanted.body == detail.verdict:
        return row.version
    return _make_current(work, detail, wanted.body, wanted.source, revised) or row.version


def _wanted(detail: FailureDetail, left: Sequence[StoredFeedback]) -> VerdictVersion | None:
    """The version of the last judgement that is left, else the machine's newest; None where it is not stored any more.

    A judgement on version N made version N + 1, or agreed with version N. One that waits for a second person did
    neither.
    """
    versions = {one.version: one for one in detail.versions}
    for judged in reversed(left):
        made = versions.get(judged.version + 1)
        if made is not None and _is_made_by(judged, made):
            return made
        if judged.held is None:
            return versions.get(judged.version)
    return next((one for one in detail.versions if one.source == "machine" and one.body is not None), None)


def _is_made_by(judged: StoredFeedback, made: VerdictVersion) -> bool:
    """Whether a judgement made the version after the one that it was given on, and not a later judgement on that."""
    body, given = made.body or {}, judged.labels
    names_it = given.side in {None, body.get("side")} and given.cause in {None, body.get("cause")}
    return made.source == "person" and made.at <= judged.at and names_it


def _make_current(
    work: UnitOfWork, detail: FailureDetail, wire: Mapping[str, Any], source: Source, revised: Revised | None
) -> int | None:
    """Store an earlier verdict as a new version, and tell hooks and channels if it says something else."""
    number = detail.row.id
    restored = work.failures.revise(number, wire, source=source, over_person=True)
    if detail.verdict is not None and facts(stored_verdict(wire)) != facts(stored_verdict(detail.verdict)):
        work.outbox.add([verdict_message("failure.revised", number, wire)])
    if revised is not None:
        revised(work, {number: wire})
    return restored


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The result of a withdrawal.

    Attributes:
        labels: failures whose label was withdrawn.
        verdicts: verdicts that returned to an earlier version.
        golden: failures whose label stays, because it is part of the golden set.
    """

    labels: int
    verdicts: int
    golden: int = 0


def withdraw_labels(
    store: Store, author: str, since: datetime, *, actor: str, revised: Revised | None = None
) -> Withdrawn:
    """Withdraw a person's judgements since a time, one failure in a transaction.

    Other people's labels stay, and those of the golden set.

    Labels of groups that consist of these judgements are withdrawn too.

    Args:
        store: the database.
        author: the person.
        since: since when.
        actor: who withdraws them.
        revised: called with a verdict that is current again; None: not called.

    Raises:
        Unavailable: the database does not answer; calling again withdraws the rest.
    """
    with store.reading() as reading:
        failure_ids = reading.feedback.judged_by(author, since)
    verdicts = golden = 0
    for failure_id in reversed(failure_ids):  # a group without a label has the verdict of its newest failure
        with store.unit_of_work() as work:
            work.failures.lock([failure_id])
            protected = work.feedback.label(failure_id)
            if protected is not None and protected.golden:
                golden += 1
                continue
            before = _judgements(work, failure_id)
            work.feedback.withdraw(failure_id, author, since, actor)
            try:
                detail = work.failures.get(failure_id)
            except NotFound:
                continue
            restored = _restore(work, detail, revised) != detail.row.version
            _remove_group_labels(work, detail, {one.id for one in before}, actor)
            work.audit_log.append(
                actor, "label.withdrawn", f"failure/{failure_id}", before={"who": author}, after={"restored": restored}
            )
            verdicts += restored
    return Withdrawn(len(failure_ids) - golden, verdicts, golden)


def _remove_group_labels(work: UnitOfWork, detail: FailureDetail, before: Collection[int], actor: str) -> None:
    """Withdraw the labels of the group of a failure one of whose judgements was withdrawn.

    `before`: the judgements of the failure before the withdrawal.
    """
    gone = {(detail.row.id, one) for one in before} - {
        (detail.row.id, one.id) for one in _judgements(work, detail.row.id)
    }
    for group_id in work.groups.of([detail.row.fingerprint]).values():
        for label in work.group_labels.of(group_id):
            if not gone.isdisjoint(label.judgements):
                group_labels.remove(work, label, actor, len(label.judgements))
