"""Stored failures as cases that a model can classify again."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from classifiers.contracts import LogStream, RawCase, Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.errors import NotFound
from service.failures.records import AttemptLogs, FailureDetail
from service.failures.revised_verdict import event_of, logs_of_failed_attempt
from service.pipeline import classification
from service.pipeline.classification import ReadAttempt, with_earlier

# Fleet evidence is read for this many failures together: its queries cover the time from the first to the last of them,
# and return a bounded number of rows.
IN_CONTEXT: Final = 50


class NamedClassifier(classification.Classifier, Protocol):
    """The classifier: the one in use, or one with another site layer."""

    @property
    def model(self) -> str:
        """Its name, with the id of its site layer."""
        ...

    @property
    def rules(self) -> str:
        """Name and version of the signatures."""
        ...


@dataclass(frozen=True)
class StoredCase:
    """A stored failure with the attempt that failed."""

    detail: FailureDetail
    attempt: ReadAttempt

    @property
    def event(self) -> JobCompletion:
        """The event of the attempt."""
        return self.attempt.event

    @property
    def case(self) -> RawCase:
        """The case of the attempt."""
        return self.attempt.case


def read_cases(store: Store, failure_ids: Sequence[int]) -> list[StoredCase]:
    """Stored failures in the given order, without those that are deleted or whose event or logs retention removed.

    Raises:
        Unavailable: the database or the log storage does not answer.
    """
    found: list[tuple[FailureDetail, JobCompletion, AttemptLogs]] = []
    with store.reading() as reading:
        details = reading.failures.details(failure_ids)
    for detail in (details[one] for one in failure_ids if one in details):
        logs, event = logs_of_failed_attempt(detail), event_of(detail)
        if logs is not None and event is not None and detail.verdict is not None:
            found.append((detail, event, logs))
    store.log_bodies.prefetch([logs.prefetch for _, _, logs in found])
    readable: list[tuple[FailureDetail, JobCompletion, Sequence[LogStream]]] = []
    for detail, event, logs in found:
        with suppress(NotFound):
            streams = logs.readable_streams()
            if streams or not event.logs:  # else retention removed them
                readable.append((detail, event, streams))
    attempts = with_earlier(store, [(event, streams) for _, event, streams in readable])
    return [StoredCase(detail, attempt) for (detail, _, _), attempt in zip(readable, attempts, strict=True)]


def verdicts_of(store: Store, cases: Sequence[StoredCase], classifier: NamedClassifier) -> list[Verdict]:
    """The verdict of a model on each stored failure, with what is known of its nodes, in order.

    Raises:
        Unavailable: the database does not answer.
    """
    attempts = [one.attempt for one in cases]
    return classification.verdicts_of(store, classifier, attempts, context_at_once=IN_CONTEXT)
