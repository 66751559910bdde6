"""Export and import of labels as `labelled-case/1`, the input of `faultline train --add`. Redacted again on export.

An export holds what people said, never what the model said: an axis that no person named has no label.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from classifiers.contracts import LogStream
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import DatasetError, LabelledCase
from classifiers.model.site.memory import RESUBMITTED
from classifiers.redaction import redact, redact_json
from service.contracts.event import JobCompletion
from service.db.session import ReadSession, Store
from service.errors import Conflict, DamagedData, FieldError, InvalidInput, NotFound, damage_translated
from service.failures.records import AttemptLogs, FailureDetail, Visibility
from service.failures.revised_verdict import logs_of_failed_attempt
from service.feedback.records import JUDGING, FeedbackInput, Label, Labels, StoredFeedback
from service.feedback.service import Feedback
from service.logs.excerpt import TAIL_BYTES
from service.people.roles import sees

log = logging.getLogger(__name__)

LONGEST_TAIL = TAIL_BYTES  # characters of the end of a stream: as much as is read, so that no first error is cut off
_ID_CHARACTERS = 300  # of the id of an imported case
_PAGE = 20  # each with its logs, in memory at once


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: imported lines, lines whose failure is not stored, and invalid lines.

    `waiting`: imported labels that wait for a second person.
    """

    taken: int
    elsewhere: tuple[str, ...]
    wrong: tuple[str, ...]
    waiting: int = 0


def cases(
    store: Store, *, golden: bool | None = None, most_alike: int | None = None, audited: Collection[int] = ()
) -> Iterator[dict[str, Any]]:
    """Every label of a failure whose log is still stored, newest first, as labelled-case/1.

    Labels that are disputed, contested or wait for a second person are left out, as are labels without side and cause.
    A label of the golden set stays in it when a person disagrees.

    Args:
        store: the labels.
        golden: only the protected set, only the rest, or (None) both.
        most_alike: so many of the same label that one person gave to failures of one group, the newest ones; the logs
            of the others are not read. None: all.
        audited: failures whose labels are never left out as one of many alike.
    """
    cursor: str | None = None
    alike: Counter[tuple[str, ...]] = Counter()
    while True:
        with store.reading() as reading:  # not while a case is handed out: a slow client would keep the connection
            page = reading.feedback.labelled(limit=_PAGE, cursor=cursor)
            labels = [label for label in page.items if _is_exported(label, golden=golden)]
            if most_alike is not None:
                labels = _newest_alike(reading, labels, alike, most_alike, audited)
            details = reading.failures.details([label.failure_id for label in labels])
            found = [
                _case_of(details[label.failure_id], label, reading.feedback.of(label.failure_id))
                for label in labels
                if label.failure_id in details
            ]
        yield from (case for case in found if case is not None)
        cursor = page.next_cursor
        if cursor is None:
            return


def _newest_alike(
    reading: ReadSession, labels: Sequence[Label], alike: Counter[tuple[str, ...]], most: int, audited: Collection[int]
) -> list[Label]:
    """The labels without those that others repeat often enough; counts them in `alike`."""
    rows = reading.failures.rows([label.failure_id for label in labels])
    found = []
    for label in labels:
        row = rows.get(label.failure_id)
        key = (row.fingerprint if row else "", label.who, label.labels.side or "", label.labels.cause or "")
        alike[key] += 1
        if alike[key] <= most or label.failure_id in audited:
            found.append(label)
    return found


def _is_exported(label: Label, *, golden: bool | None) -> bool:
    """Whether `cases` exports a label, if its case is still stored."""
    doubtful = label.disputed or label.contested or label.held is not None
    if (doubtful and not label.golden) or (golden is not None and label.golden is not golden):
        return False
    return label.labels.side is not None or label.labels.cause is not None


def _case_of(detail: FailureDetail, label: Label, words: tuple[StoredFeedback, ...]) -> dict[str, Any] | None:
    """As `case_of`; None for one that is damaged, which must not keep all others from being exported."""
    try:
        with damage_translated():
            return case_of(detail, label, words)
    except DamagedData:
        log.exception("failure %d: what is stored of it is damaged, and its label is not exported", detail.row.id)
        return None


def case_of(detail: FailureDetail, label: Label, words: tuple[StoredFeedback, ...]) -> dict[str, Any] | None:
    """One label as labelled-case/1; None if retention removed its case."""
    row = detail.row
    logs = logs_of_failed_attempt(detail)
    if logs is None or not logs.event:
        return None
    streams = _streams(logs)
    if not streams and logs.event.get("logs"):
        return None  # without its log it would stand for every failure without one
    verdict = detail.verdict or {}
    labels = label.labels
    shown = next((one for one in reversed(words) if one.who == label.who), None)
    event = {name: value for name, value in logs.event.items() if name != "logs"}
    event["logs"] = [_log(stream) for stream in streams if stream.missing is None]
    return {
        "schema": labelled_cases.SCHEMA,
        "id": f"faultline-{_plain(row.cluster)}-{row.id}",
        "group": f"operator-{row.fingerprint}",
        "kind": row.fingerprint,
        "event": redact_json(event),
        "labels": {
            "side": labels.side,
            "cause": labels.cause,
            "category": labels.category,
            "symptom": labels.symptom,
            "retry": _agreed_retry(label, words),
            "root_rank": None,
            "root_line": None,
        },
        "provenance": {
            "origin": "operator",
            "framework": event.get("framework"),
            "who": label.who,
            "when": label.at.isoformat(),
            "evidence_seen": bool(verdict.get("evidence")),
            "model_shown": shown.model_shown if shown is not None else True,
            "people": label.people,
            "feedback": "audit" if any(one.kind == "audit" for one in words) else None if shown is None else shown.kind,
            "golden": label.golden,
            "failure": {"cluster": row.cluster, "job_id": row.job_id, "attempt": row.attempt},
        },
    }


def _agreed_retry(label: Label, words: Sequence[StoredFeedback]) -> str | None:
    """The outlook of a retry; None where a retry helps by the word of one of several people who agree on the cause.

    Whoever reads the label takes it for that of all of them.
    """
    retry = label.labels.retry
    given = {one.who: one.labels.retry for one in words if one.kind in JUDGING}
    alone = retry in RESUBMITTED and label.people > 1 and list(given.values()).count(retry) == 1
    return None if alone else retry


def _streams(logs: AttemptLogs) -> tuple[LogStream, ...]:
    """The stored logs; none if they have been removed."""
    with suppress(NotFound):
        return logs.readable_streams()
    return ()


def import_labels(
    store: Store, feedback: Feedback, lines: Iterator[tuple[str, Any]], *, actor: str, visible: Visibility | None = None
) -> Imported:
    """Import labels; each is added to the stored failure of the same job and attempt.

    Args:
        store: the failures.
        feedback: adds the labels.
        actor: who imports them. Names of authors in the lines are not verified; they become part of the note.
        lines: (place, decoded JSON) of each line.
        visible: the failures that this person or program sees; others count as not stored. None: all.
    """
    taken, waiting, elsewhere, wrong = 0, 0, [], []
    read: list[_Line] = []
    for place, raw in lines:
        try:
            read.append(_line_of(place, raw, labelled_cases.parse(raw, place)))
        except DatasetError as error:
            wrong.append(str(error))
    # One label for many failures is one action, whether by a list or by a file.
    alike = Counter((one.word.labels.side, one.word.labels.cause) for one in read)
    for one in read:
        failure_id = None if one.attempt is None else _failure_of(store, *one.attempt, visible)
        if failure_id is None:
            elsewhere.append(f"{one.place}: {one.case_id}")
            continue
        labels = one.word.labels
        try:
            added = feedback.add(failure_id, actor, one.word, at_once=alike[labels.side, labels.cause])
            taken += 1
            waiting += added.label.held is not None
        except (Conflict, InvalidInput) as error:
            wrong.append(f"{one.place}: {error.detail}")
    return Imported(taken, tuple(elsewhere), tuple(wrong), waiting)


@dataclass(frozen=True, slots=True)
class _Line:
    """What an import keeps of a line: not its logs, since all lines are counted before the first is imported.

    `attempt`: cluster, job and number of the attempt; None if the event of the line names none.
    """

    place: str
    case_id: str
    attempt: tuple[str, str, int | None] | None
    word: FeedbackInput


def _line_of(place: str, raw: Mapping[str, Any], case: LabelledCase) -> _Line:
    best, case_id = case.labels.best, case.id[:_ID_CHARACTERS]
    author = case.provenance.get("who")
    note = f"imported as {case_id}" + (f"; author in the file, not verified: {str(author)[:200]}" if author else "")
    word = FeedbackInput(
        "import",
        Labels(best["side"], best["cause"], best["category"], best["symptom"], best["retry"]),
        note=redact(note)[:1_000],
        model_shown=bool(case.provenance.get("model_shown", True)),
    )
    return _Line(place, case_id, _attempt_of(raw["event"]), word)


def protect(store: Store, failure_id: int, *, golden: bool, actor: str, has_login: bool = True) -> None:
    """Add a label to the protected set, or remove it.

    Args:
        store: the labels.
        failure_id: the failure.
        golden: whether to add it.
        actor: who does it. A label that nobody else gave needs another person, since the set judges the labels of all.
        has_login: whether the service has a login; without one, all callers have the same name.

    Raises:
        Conflict: the failure has no label, the label is disputed or waits for a second person, or it is that of the
            person who adds it alone.
    """
    with store.unit_of_work() as work:
        label = work.feedback.label(failure_id)
        if label is None or (golden and not _is_exported(replace(label, golden=False), golden=None)):
            expected = "a label of side or cause that nobody disputes and that waits for no second person"
            raise Conflict(f"failure {failure_id}: expected {expected}", (FieldError("failure", expected),))
        if golden and has_login and _is_of_one_person(label, work.feedback.of(failure_id), actor):
            expected = "another person: nobody but you gave this label"
            raise Conflict(f"failure {failure_id}: expected {expected}", (FieldError("golden", expected),))
        work.feedback.protect(failure_id, golden=golden)
        work.audit_log.append(
            actor, "label.golden", f"failure/{failure_id}", before={"golden": label.golden}, after={"golden": golden}
        )


def _is_of_one_person(label: Label, words: Sequence[StoredFeedback], actor: str) -> bool:
    """Whether no other person's last judgement names the side and cause of a label."""
    last = {one.who: one.labels for one in words if one.kind in JUDGING}
    return not any(
        (one.side, one.cause) == (label.labels.side, label.labels.cause) for name, one in last.items() if name != actor
    )


def _attempt_of(event: Mapping[str, Any]) -> tuple[str, str, int | None] | None:
    try:
        known = JobCompletion.model_validate(
            {name: value for name, value in event.items() if name not in {"logs", "node_events"}}
        )
    except ValidationError:
        return None
    return known.cluster, known.job_id, known.attempt


def _failure_of(store: Store, cluster: str, job_id: str, attempt: int | None, visible: Visibility | None) -> int | None:
    with store.reading() as reading:
        attempts = reading.jobs.attempts(cluster, job_id)
    return next(
        (
            one.failure_id
            for one in attempts
            if one.attempt == attempt and one.failure_id and sees(visible, one.cluster, one.user, one.team)
        ),
        None,
    )


def _log(stream: LogStream) -> dict[str, Any]:
    text = redact(stream.text)
    return {"rank": stream.rank, "node": stream.node, "stream": stream.stream, "tail": text[-LONGEST_TAIL:]}


def _plain(name: str) -> str:
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name)[:60]
