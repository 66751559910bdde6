"""Feedback on verdicts: every entry is kept; one row per failure holds the resulting label."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, case, delete, func, insert, literal, or_, select, tuple_, update

from classifiers.data.labelled_cases import AXES
from service.contracts.page import Page
from service.failures.tables import failures
from service.feedback.records import JUDGING, VOTES, Label, Labels, NewFeedback, StoredFeedback
from service.feedback.tables import audit_samples, feedback, labels
from service.sql import paging as cursors
from service.sql.bulk import upsert
from service.sql.packing import pack
from service.sql.reader import TimedReader
from service.sql.types import UtcDateTime, clean, short, utc

_WORDS = 200  # judgements of one failure, and as many votes
_HELD = 200  # characters


class FeedbackReader(TimedReader):
    """Reads feedback."""

    def of(self, failure_id: int) -> tuple[StoredFeedback, ...]:
        """The feedback on a failure that was not withdrawn, oldest first: the newest judgements and the newest votes.

        The last judgement and the last vote of each person are always among them, however much there is.
        """
        of_failure = (feedback.c.failure_id == failure_id, feedback.c.withdrawn_by.is_(None))
        is_vote = case((feedback.c.kind.in_(VOTES), 1), else_=0)
        last = select(func.max(feedback.c.id)).where(*of_failure).group_by(feedback.c.who, feedback.c.kind)
        newest = [
            select(feedback.c.id).where(*of_failure, is_vote == vote).order_by(feedback.c.id.desc()).limit(_WORDS)
            for vote in (0, 1)
        ]
        shown = or_(feedback.c.id.in_(last), *(feedback.c.id.in_(one.subquery().select()) for one in newest))
        found = self._connection.execute(select(feedback).where(*of_failure, shown).order_by(feedback.c.id))
        return tuple(_stored_feedback(row) for row in found)

    def label(self, failure_id: int) -> Label | None:
        """The label of a failure."""
        row = self._connection.execute(select(labels).where(labels.c.failure_id == failure_id)).first()
        return None if row is None else _label(row)

    def labelled(self, *, limit: int = 500, cursor: str | None = None, open_only: bool = False) -> Page[Label]:
        """Labels, newest first; `open_only`: disputed, contested or held ones.

        Raises:
            InvalidInput: a limit out of range, or a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        kind = "labels-open" if open_only else "labels"
        wanted = select(labels).order_by(labels.c.at.desc(), labels.c.failure_id.desc()).limit(limit + 1)
        if open_only:
            wanted = wanted.where(labels.c.waiting)
        if cursor is not None:
            position, last = cursors.decode(cursor, kind, str, int)
            at = literal(cursors.instant(cursor, position), UtcDateTime)
            wanted = wanted.where(tuple_(labels.c.at, labels.c.failure_id) < tuple_(at, literal(last)))
        rows = self._connection.execute(wanted).all()
        return cursors.page_of(rows, limit, _label, kind, lambda last: (last.at.isoformat(), last.failure_id))

    def labels_of_group(self, fingerprint: str, *, without: int) -> tuple[Label, ...]:
        """The newest labels of other failures with a fingerprint that do not wait for a person."""
        found = self._connection.execute(
            select(labels)
            .join(failures, failures.c.id == labels.c.failure_id)
            .where(failures.c.fingerprint == fingerprint, labels.c.failure_id != without, labels.c.waiting.is_(False))
            .order_by(labels.c.at.desc(), labels.c.failure_id.desc())
            .limit(_WORDS)
        )
        return tuple(_label(row) for row in found)

    def judged_by(self, actor: str, since: datetime) -> tuple[int, ...]:
        """The failures that a person judged since a time."""
        found = self._connection.execute(
            select(feedback.c.failure_id)
            .where(
                feedback.c.who == clean(actor[:200]),
                feedback.c.at >= utc(since),
                feedback.c.kind.in_(JUDGING),
                feedback.c.withdrawn_by.is_(None),
            )
            .distinct()
            .order_by(feedback.c.failure_id)
        )
        return tuple(found.scalars())

    def labels_by_cause(self, since: datetime) -> dict[str, int]:
        """The number of labels of each cause that were given since a time."""
        found = self._connection.execute(
            select(labels.c.cause, func.count().label("many"))
            .where(labels.c.at >= utc(since), labels.c.cause.is_not(None))
            .group_by(labels.c.cause)
        )
        return {row.cause: row.many for row in found}

    def labels_since(self, since: datetime | None) -> int:
        """The number of labels that people gave since a time (None: ever), without the golden set."""
        wanted = select(func.count()).select_from(labels).where(labels.c.golden.is_(False), labels.c.people > 0)
        if since is not None:
            # Votes on a label change its time too, but nothing that is learned.
            judged = select(feedback.c.id).where(
                feedback.c.failure_id == labels.c.failure_id,
                feedback.c.kind.in_(JUDGING),
                feedback.c.withdrawn_by.is_(None),
                feedback.c.at > utc(since),
            )
            wanted = wanted.where(labels.c.at > utc(since), judged.exists())
        return int(self._connection.execute(wanted).scalar_one())

    def golden(self) -> frozenset[int]:
        """The failures of the golden set."""
        return frozenset(self._connection.execute(select(labels.c.failure_id).where(labels.c.golden)).scalars())

    def unsure_about(self, failure_ids: Sequence[int]) -> frozenset[int]:
        """Those of the failures whose cause a person could not determine."""
        found = self._connection.execute(
            select(feedback.c.failure_id).where(
                feedback.c.failure_id.in_(failure_ids), feedback.c.kind == "unsure", feedback.c.withdrawn_by.is_(None)
            )
        )
        return frozenset(found.scalars())

    def contests(self, since: datetime) -> dict[str, int]:
        """The number of failures whose verdict was contested since a time, by cause."""
        found = self._connection.execute(
            select(feedback.c.said_cause, func.count(feedback.c.failure_id.distinct()).label("many"))
            .where(feedback.c.kind == "contest", feedback.c.at >= utc(since))
            .group_by(feedback.c.said_cause)
        )
        return {row.said_cause: row.many for row in found}

    def votes(self, actor: str, since: datetime) -> int:
        """The number of votes that a person gave since a time."""
        return int(
            self._connection.execute(
                select(func.count())
                .select_from(feedback)
                .where(feedback.c.kind.in_(VOTES), feedback.c.at >= utc(since), feedback.c.who == clean(actor[:200]))
            ).scalar_one()
        )


class FeedbackRepository(FeedbackReader):
    """Reads and writes feedback."""

    def add(self, new: NewFeedback) -> tuple[int, Label]:
        """Store feedback; returns its number and the resulting label of the failure."""
        given = {axis: short(getattr(new.labels, axis), 40) for axis in AXES}
        number: int = self._connection.execute(
            insert(feedback)
            .values(
                failure_id=new.failure_id,
                at=utc(self._clock.now()),
                who=clean(new.who[:200]),
                kind=new.kind,
                version=new.version,
                said_side=new.said_side,
                said_cause=new.said_cause,
                note=None if new.note is None else clean(new.note),
                model_shown=new.model_shown,
                evidence=pack(list(new.evidence)) if new.evidence else None,
                held=None if new.held is None else clean(new.held[:_HELD]),
                **given,
            )
            .returning(feedback.c.id)
        ).scalar_one()
        return number, self._settle(new.failure_id)

    def withdraw(self, failure_id: int, author: str, since: datetime, actor: str) -> Label | None:
        """Withdraw a person's judgements of a failure since a time; returns the label that is left."""
        self._connection.execute(
            update(feedback)
            .where(
                feedback.c.failure_id == failure_id,
                feedback.c.who == clean(author[:200]),
                feedback.c.at >= utc(since),
                feedback.c.kind.in_(JUDGING),
                feedback.c.withdrawn_by.is_(None),  # who withdrew the others stays as it is
            )
            .values(withdrawn_by=clean(actor[:200]))
        )
        return self._settle_or_remove(failure_id)

    def withdraw_one(self, failure_id: int, feedback_id: int, actor: str) -> None:
        """Withdraw one judgement of a failure; its label follows from what is left."""
        self._connection.execute(
            update(feedback)
            .where(feedback.c.id == feedback_id, feedback.c.failure_id == failure_id)
            .values(withdrawn_by=clean(actor[:200]))
        )
        self._settle_or_remove(failure_id)

    def protect(self, failure_id: int, *, golden: bool) -> bool:
        """Add a label to the protected set, or remove it; whether there is one."""
        changed = self._connection.execute(
            update(labels).where(labels.c.failure_id == failure_id).values(golden=golden)
        )
        return changed.rowcount == 1

    def _settle_or_remove(self, failure_id: int) -> Label | None:
        """Store the label that follows from what was not withdrawn; None: no judgement is left, and no label.

        Failures of weekly samples whose judgement was withdrawn are open again.
        """
        withdrawn = select(feedback.c.id).where(
            feedback.c.failure_id == failure_id, feedback.c.withdrawn_by.is_not(None)
        )
        self._connection.execute(
            update(audit_samples)
            .where(audit_samples.c.failure_id == failure_id, audit_samples.c.feedback_id.in_(withdrawn))
            .values(feedback_id=None)
        )
        if any(entry.kind in JUDGING for entry in self.of(failure_id)):
            return self._settle(failure_id)
        self._connection.execute(delete(labels).where(labels.c.failure_id == failure_id))
        return None

    def _settle(self, failure_id: int) -> Label:
        """Store the label that follows from all feedback."""
        entries = self.of(failure_id)
        before = self.label(failure_id)
        last: dict[str, StoredFeedback] = {}
        for entry in entries:
            if entry.kind in JUDGING:
                last[entry.who] = _continued(entry, last.pop(entry.who, None))
        # Whoever corrects another axis alone does not give, or repeat, the side and cause of others.
        judged = [one for one in last.values() if _names_a_fault(one)] or list(last.values())
        votes = {entry.who: entry for entry in entries if entry.kind in VOTES}  # the last one of each person
        contest = max((entry.id for entry in votes.values() if entry.kind == "contest"), default=0)
        newest = judged[-1] if judged else entries[-1]
        # What an owner says is a vote: it becomes a label only where an operator gives it too.
        given = _with_cause(newest.labels, judged) if judged else Labels()
        resulting = before.labels if before is not None and before.golden else given
        made = Label(
            failure_id,
            entries[-1].at,
            before.who if before is not None and before.golden else newest.who,
            resulting,
            len(judged),
            disputed=_disagree(judged),
            contested=contest > max((entry.id for entry in judged), default=0),
            golden=before is not None and before.golden,
            held=None if _several_agree(judged) else newest.held,
        )
        if not judged and not contest:
            # Undetermined, or the owner agrees: there is no label, and no contest any more.
            self._connection.execute(
                delete(labels).where(labels.c.failure_id == failure_id, labels.c.golden.is_(False))
            )
            return made
        values: dict[str, Any] = {
            "at": made.at,
            "who": made.who,
            "people": made.people,
            "disputed": made.disputed,
            "contested": made.contested,
            "golden": made.golden,
            "waiting": made.disputed or made.contested or made.held is not None,
            "held": made.held,
            **{axis: getattr(made.labels, axis) for axis in AXES},
        }
        writing = upsert(self._connection, labels).values({"failure_id": failure_id, **values})
        self._connection.execute(writing.on_conflict_do_update(index_elements=["failure_id"], set_=values))
        return made


def _names_a_fault(judged: StoredFeedback) -> bool:
    return judged.labels.side is not None or judged.labels.cause is not None


def _continued(newest: StoredFeedback, earlier: StoredFeedback | None) -> StoredFeedback:
    """A person's newest judgement; if it names neither side nor cause, with those that they named before."""
    if earlier is None or _names_a_fault(newest) or not _names_a_fault(earlier):
        return newest
    named = replace(newest.labels, side=earlier.labels.side, cause=earlier.labels.cause)
    return replace(newest, labels=named, held=newest.held or earlier.held)


def _disagree(judged: Sequence[StoredFeedback]) -> bool:
    """Whether people name different sides or causes; a side alone contradicts no cause of this side."""
    return any(len({getattr(one.labels, axis) for one in judged} - {None}) > 1 for axis in ("side", "cause"))


def _with_cause(newest: Labels, judged: Sequence[StoredFeedback]) -> Labels:
    """The newest labels; where they name a side alone, with the cause that another person gave for it last."""
    if newest.cause is not None or newest.side is None:
        return newest
    causes = [one.labels.cause for one in judged if one.labels.side == newest.side and one.labels.cause is not None]
    return replace(newest, cause=causes[-1]) if causes else newest


def _several_agree(judged: Sequence[StoredFeedback]) -> bool:
    """Whether several people gave the side and cause of the newest judgement."""
    return (
        sum((one.labels.side, one.labels.cause) == (judged[-1].labels.side, judged[-1].labels.cause) for one in judged)
        > 1
        if judged
        else False
    )


def _labels_of(row: Row[Any]) -> Labels:
    return Labels(row.side, row.cause, row.category, row.symptom, row.retry)


def _stored_feedback(row: Row[Any]) -> StoredFeedback:
    return StoredFeedback(
        row.id,
        row.failure_id,
        row.at,
        row.who,
        row.kind,
        row.version,
        row.said_side,
        row.said_cause,
        _labels_of(row),
        row.note,
        row.model_shown,
        row.held,
    )


def _label(row: Row[Any]) -> Label:
    return Label(
        row.failure_id,
        row.at,
        row.who,
        _labels_of(row),
        row.people,
        disputed=row.disputed,
        contested=row.contested,
        golden=row.golden,
        held=row.held,
    )
