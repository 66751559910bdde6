"""Feedback on verdicts: confirm, correct, audit, cannot tell, and the votes contest and agree.

A judgement creates a new version of the verdict (source: person) that the classifier does not overrule. If it changes
something, hooks and channels get `failure.revised`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

from classifiers import taxonomy
from classifiers.contracts import JobFacts, Verdict
from classifiers.data.labelled_cases import AXES, codes_of
from service import weeks
from service.clock import Clock
from service.contracts.event import JobCompletion
from service.contracts.verdict import stored_verdict
from service.db.session import Store, UnitOfWork
from service.deliveries.records import verdict_message
from service.errors import Conflict, FieldError, InvalidInput, NotFound, TooManyRequests, invalid
from service.failures.records import FailureDetail, FailureFilter
from service.failures.revised_verdict import Revised, VerdictAdvisor, event_of, facts, revised_wire
from service.feedback import group_labels, label_review, withdrawal
from service.feedback.corrected_verdict import completed, corrected, data
from service.feedback.label_review import LabelHold
from service.feedback.records import (
    JUDGING,
    VOTES,
    FeedbackInput,
    FeedbackKind,
    FeedbackResult,
    GroupLabel,
    Label,
    Labels,
    NewFeedback,
    WithdrawnGroupLabel,
)
from service.fixes import service as fix_service

LONGEST_NOTE = 4_000


def check_input(feedback: FeedbackInput) -> None:
    """Check that the feedback is valid.

    Raises:
        InvalidInput: names the field.
    """
    labels = feedback.labels
    for axis in AXES:
        value, codes = getattr(labels, axis), codes_of(axis)
        if value is not None and value not in codes:
            raise invalid(axis, "one of " + ", ".join(codes), str(value))
    if labels.cause is not None and labels.side is not None and taxonomy.load().side_of(labels.cause) != labels.side:
        raise invalid("cause", f"a cause of side {labels.side}", labels.cause)
    if feedback.kind in {"unsure", "agree"} and labels != Labels():
        raise invalid("labels", f"none: the kind {feedback.kind} names no label", "some")
    if feedback.kind == "correct" and labels == Labels():
        raise invalid("labels", "at least one of side, cause, category, symptom, retry", "none")
    if feedback.fixed_by is not None:
        if feedback.kind not in {"confirm", "correct"}:
            raise invalid("fixed_by", "only with confirm or correct", feedback.fixed_by)
        fix_service.check(feedback.fixed_by)
    if feedback.note is not None and len(feedback.note) > LONGEST_NOTE:
        raise invalid("note", f"at most {LONGEST_NOTE:,} characters", f"{len(feedback.note)} characters")


MOST_AT_ONCE = 500  # failures per bulk judgement
# Judgement: more than anybody reads, and few enough that a script can't fill the queue of contested verdicts.
VOTES_AN_HOUR = 30
_SHOWN_EVIDENCE = 40
_HOUR = timedelta(hours=1)
UNDO_WITHIN = _HOUR
_UNDONE: tuple[FeedbackKind, ...] = ("confirm", "correct")


class Feedback:
    """Stores feedback.

    Args:
        store: the database.
        clock: the current time.
        advisor: makes the advice for a verdict that a person changed.
        revised: called in the same transaction with the failure's id and its new verdict/1; None: not called.
        zone: the time zone of the sampled weeks: that of the weekly report.
    """

    def __init__(
        self, store: Store, clock: Clock, advisor: VerdictAdvisor, revised: Revised | None = None, *, zone: ZoneInfo
    ) -> None:
        self._store = store
        self._clock = clock
        self._advisor = advisor
        self._revised = revised
        self._zone = zone

    def add(self, failure_id: int, actor: str, feedback: FeedbackInput, *, at_once: int = 1) -> FeedbackResult:
        """Store feedback on one failure.

        Args:
            failure_id: the failure.
            actor: the person.
            feedback: the feedback.
            at_once: the number of failures that get the same label in one action.

        Raises:
            NotFound: no such failure.
            InvalidInput: an unknown code, a cause of another side, or an empty correction.
            Conflict: retention removed the verdict, or it has another version meanwhile.
            TooManyRequests: the person gave `VOTES_AN_HOUR` votes in the last hour.
        """
        check_input(feedback)
        with self._store.unit_of_work() as work:
            if feedback.kind in VOTES and work.feedback.votes(actor, self._clock.now() - _HOUR) >= VOTES_AN_HOUR:
                raise TooManyRequests(
                    f"{actor} gave {VOTES_AN_HOUR} votes in the last hour: try again later", int(_HOUR.total_seconds())
                )
            work.failures.lock([failure_id])
            return self._store_one(work, failure_id, actor, feedback, at_once=at_once)

    def add_to_many(
        self, failure_ids: Sequence[int], actor: str, feedback: FeedbackInput, versions: Sequence[int] = ()
    ) -> list[FeedbackResult]:
        """Store the same feedback on many failures, 25 per transaction; deleted failures are left out.

        Args:
            failure_ids: the failures; a repeated one is judged once.
            actor: the person.
            feedback: the feedback; its version applies to all of them.
            versions: the version of each that the person saw, in their order; failures with another version meanwhile
                are left out. Empty: any version.

        Raises:
            InvalidInput: as `add`; or more than 500 failures at once; or not as many versions as failures.
        """
        check_input(feedback)
        if versions and len(versions) != len(failure_ids):
            raise invalid("versions", f"one for each of {len(failure_ids)} failures", str(len(versions)))
        seen = dict(zip(failure_ids, versions, strict=False))
        wanted = list(dict.fromkeys(failure_ids))
        if not 1 <= len(wanted) <= MOST_AT_ONCE:
            expected = f"1 to {MOST_AT_ONCE} failures"
            raise InvalidInput(f"failures: expected {expected}", (FieldError("failures", expected, str(len(wanted))),))
        results: list[FeedbackResult] = []
        for start in range(0, len(wanted), 25):
            with self._store.unit_of_work() as work:
                work.failures.lock(wanted[start : start + 25])
                for failure_id in wanted[start : start + 25]:
                    try:
                        own = replace(feedback, version=seen.get(failure_id, feedback.version))
                        results.append(self._store_one(work, failure_id, actor, own, at_once=len(wanted)))
                    except (NotFound, Conflict):
                        continue
        return results

    def add_to_group(self, group_id: int, actor: str, feedback: FeedbackInput) -> list[FeedbackResult]:
        """Store the same feedback on a group: its newest failures (500 at most), and the label of the group.

        The fix counts once, for the newest failure, however many failed before it.

        Raises:
            NotFound: no such group.
            InvalidInput: as `add`.
        """
        check_input(feedback)
        began = self._clock.now()
        with self._store.reading() as reading:
            before = reading.groups.row(group_id)
            page = reading.failures.page(FailureFilter(group=str(group_id)), limit=MOST_AT_ONCE)
        if not page.items:
            raise Conflict(f"no failure of group {group_id} is stored any more")
        results = self.add_to_many([row.id for row in page.items], actor, replace(feedback, fixed_by=None))
        if results and feedback.fixed_by is not None:
            fix_service.report(self._store, results[0].failure_id, actor, feedback.fixed_by)
        if results and feedback.kind in JUDGING:
            with self._store.unit_of_work() as work:
                group_labels.record(work, before, actor, results, began)
        return results

    def undo_of_group(self, group_id: int, actor: str) -> WithdrawnGroupLabel:
        """Withdraw the label that a person gave a group just now: the verdicts before it are current again.

        Failures that were judged again since then, or have a protected label, keep theirs.

        Raises:
            NotFound: no such group.
            Conflict: this person gave the group no label in the last hour, or somebody labelled it since then.
        """
        with self._store.reading() as reading:
            label = group_labels.own_latest(reading, group_id, actor, self._clock.now() - UNDO_WITHIN)
        return self._withdraw_group_label(label, actor)

    def withdraw_group_label(self, group_id: int, number: int, actor: str) -> WithdrawnGroupLabel:
        """Withdraw any label of a group, by whomever and whenever it was given; later labels stay.

        Raises:
            NotFound: no such group, or the group has no label of this number (any more).
        """
        with self._store.reading() as reading:
            label = group_labels.find(reading, group_id, number)
        return self._withdraw_group_label(label, actor)

    def _withdraw_group_label(self, label: GroupLabel, actor: str) -> WithdrawnGroupLabel:
        """Withdraw the judgements of a label, 25 per transaction, then that of the group."""
        undone = 0
        for start in range(0, len(label.judgements), 25):
            with self._store.unit_of_work() as work:
                group_labels.hold(work, label)
                for failure_id, feedback_id in label.judgements[start : start + 25]:
                    with suppress(NotFound, Conflict):
                        undone += withdrawal.withdraw_judgement(work, failure_id, feedback_id, actor, self._revised)
        with self._store.unit_of_work() as work:
            group_labels.remove(work, label, actor, undone)
        return WithdrawnGroupLabel(label.cause, undone, len(label.judgements) - undone)

    def audit(self, week: str, failure_id: int, actor: str, feedback: FeedbackInput) -> FeedbackResult:
        """Judge one failure of a week's sample, without having seen the verdict.

        Args:
            week: the week of the sample.
            failure_id: a failure of it.
            actor: the person.
            feedback: side and cause, or of the kind `unsure` where the person cannot tell.

        Raises:
            NotFound: it is not in that sample.
            Conflict: it was judged already.
            InvalidInput: as `add`; an audit names both, or neither where the person cannot tell.
        """
        if feedback.kind != "unsure":
            feedback = replace(feedback, kind="audit")
            if feedback.labels.side is None or feedback.labels.cause is None:
                raise invalid("cause", "a side and a cause: an audit names both", "none")
        audited = replace(feedback, model_shown=False)
        check_input(audited)
        with self._store.unit_of_work() as work:
            work.failures.lock([failure_id])
            if all(one.failure_id != failure_id for one in work.audit_samples.audit(week)):
                raise NotFound(f"failure {failure_id} is not in the sample of {week[:20]}")
            result = self._store_one(work, failure_id, actor, audited)
            if not work.audit_samples.audited(week, failure_id, result.feedback_id):
                raise Conflict(f"failure {failure_id} was judged already for {week}")
            return result

    def draw(self) -> int:
        """Draw the sample of the last completed week of the report, once; returns its size."""
        week = weeks.last_complete(self._clock.now(), self._zone)
        with self._store.reading() as reading:
            if str(week) in reading.audit_samples.audit_weeks(limit=1):
                return 0
        with self._store.unit_of_work() as work:
            return work.audit_samples.draw(str(week), *week.span(self._zone), int(data()["audit_size"]))

    def undo(self, failure_id: int, actor: str) -> int:
        """Withdraw a person's latest confirmation or correction; the verdict before it is current again.

        Returns:
            The version of the verdict.

        Raises:
            NotFound: no such failure.
            Conflict: the person has confirmed or corrected nothing in the last hour, the verdict was changed since
                then, or its label is protected.
        """
        with self._store.unit_of_work() as work:
            work.failures.lock([failure_id])
            row = work.failures.get(failure_id).row
            own = [one for one in work.feedback.of(failure_id) if one.who == actor and one.kind in JUDGING]
            if not own or own[-1].kind not in _UNDONE or self._clock.now() - own[-1].at > UNDO_WITHIN:
                raise Conflict(
                    "there is nothing to undo: you have confirmed or corrected nothing here in the last hour"
                )
            if row.version > own[-1].version + 1:
                raise Conflict(f"failure {failure_id} has a newer verdict meanwhile: reload it")
            withdrawal.withdraw_judgement(work, failure_id, own[-1].id, actor, self._revised)
            return work.failures.get(failure_id).row.version

    def _store_one(
        self, work: UnitOfWork, failure_id: int, actor: str, feedback: FeedbackInput, *, at_once: int = 1
    ) -> FeedbackResult:
        detail = work.failures.get(failure_id)  # locked: of two people, the second one sees what the first one said
        row = detail.row
        if feedback.version is not None and feedback.version != row.version:
            raise Conflict(
                f"failure {failure_id} has version {row.version} meanwhile, not {feedback.version}: reload it",
                (FieldError("version", str(row.version), str(feedback.version)),),
            )
        changed, version, labels, stated, held = False, row.version, Labels(), feedback.labels, None
        if feedback.kind in JUDGING:
            current, event = _read(detail)
            given = feedback.labels
            if feedback.kind == "confirm":  # of side and cause, whatever else it names
                given = replace(given, side=current.side, cause=current.cause)
            labels = completed(given, current)
            before = work.feedback.label(failure_id)
            made = corrected(current, labels, event.facts() if event is not None else JobFacts(row.status))
            differs = facts(made) != facts(current)
            stated = _given(labels, given)
            held = label_review.held_because(work, row, detail.verdict or {}, stated, actor=actor, at_once=at_once)
            protected = (before is not None and before.golden) or _waits(held, before, actor, stated)
            if not protected and event is not None and (differs or row.source != "person"):
                version, changed = self._write(work, detail, made, event), differs
        if feedback.fixed_by is not None:
            fix_service.report_within(work, failure_id, actor, feedback.fixed_by)
        evidence = (detail.verdict or {}).get("evidence") or ()
        number, label = work.feedback.add(
            NewFeedback(
                failure_id,
                actor,
                feedback.kind,
                row.version,
                row.side,
                row.cause,
                stated,
                (feedback.note or "").strip() or None,
                feedback.model_shown,
                [[line.get("rank"), line.get("stream"), line.get("line")] for line in evidence[:_SHOWN_EVIDENCE]],
                None if held is None else held.reason,
            )
        )
        work.audit_log.append(
            actor,
            f"verdict.{feedback.kind}",
            f"failure/{failure_id}",
            before={"version": row.version, "side": row.side, "cause": row.cause},
            after={"version": version, **{name: value for name, value in asdict(labels).items() if value is not None}},
        )
        return FeedbackResult(failure_id, number, version, changed, label)

    def _write(self, work: UnitOfWork, detail: FailureDetail, made: Verdict, event: JobCompletion) -> int:
        wire = revised_wire(detail, made, event, self._advisor(made, event))
        version = work.failures.revise(detail.row.id, wire, source="person")
        if facts(made) != facts(stored_verdict(detail.verdict or {})):
            work.outbox.add([verdict_message("failure.revised", detail.row.id, wire)])
        if self._revised is not None:
            self._revised(work, {detail.row.id: wire})
        return version or detail.row.version


def _read(detail: FailureDetail) -> tuple[Verdict, JobCompletion | None]:
    if detail.verdict is None:
        raise Conflict(f"the verdict of failure {detail.row.id} was removed by retention: it cannot be judged any more")
    return replace(stored_verdict(detail.verdict), fingerprint=detail.row.fingerprint), event_of(detail)


def _given(complete: Labels, given: Labels) -> Labels:
    """What a person said: the axes that the person named, and the side of a cause.

    Whoever names a side alone says nothing of the cause, and whoever corrects another axis says nothing of either.
    """
    return replace(given, side=None if given.side is None and given.cause is None else complete.side)


def _waits(held: LabelHold | None, before: Label | None, actor: str, labels: Labels) -> bool:
    """Whether a label changes no verdict until a second person gives it."""
    if held is None or not held.verdict_waits:
        return False
    if before is None or before.who == actor:
        return True
    return (before.labels.side, before.labels.cause) != (labels.side, labels.cause)
