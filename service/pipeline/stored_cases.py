"""Stored failures as cases that a model can classify again."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from classifiers.contracts import RawCase, Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.errors import NotFound
from service.failures.records import AttemptLogs, FailureDetail
from service.failures.revised_verdict import event_of, logs_of_failed_attempt
from service.pipeline.cases import KnownBefore, case_of, known_before
from service.pipeline.context import in_context
from service.pipeline.refine import refine

# Fleet evidence is read for this many failures together: its queries cover the time from the first to the last of them,
# and return a bounded number of rows.
IN_CONTEXT: Final = 50


class Classifier(Protocol):
    """The classifier: the one in use, or one with another site layer."""

    @property
    def model(self) -> str:
        """Its name, with the id of its site layer."""
        ...

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict for each case, in order."""
        ...


@dataclass(frozen=True)
class StoredCase:
    """A stored failure with its event, its case and what is known of the time before it."""

    detail: FailureDetail
    event: JobCompletion
    case: RawCase
    before: KnownBefore


def read_cases(store: Store, failure_ids: Sequence[int]) -> list[StoredCase]:
    """Stored failures in the given order, without those that are deleted or whose event or logs retention removed.

    Raises:
        Unavailable: the database or the log storage does not answer.
    """
    found: list[tuple[FailureDetail, JobCompletion, AttemptLogs]] = []
    cases: list[StoredCase] = []
    with store.reading() as reading:
        details = reading.failures.details(failure_ids)
    for detail in (details[one] for one in failure_ids if one in details):
        logs, event = logs_of_failed_attempt(detail), event_of(detail)
        if logs is not None and event is not None and detail.verdict is not None:
            found.append((detail, event, logs))
    store.log_bodies.prefetch([logs.prefetch for _, _, logs in found])
    before = known_before(store, [event for _, event, _ in found])
    for (detail, event, logs), known in zip(found, before, strict=True):
        with suppress(NotFound):
            streams = logs.readable_streams()
            if streams or not event.logs:  # else retention removed them
                cases.append(StoredCase(detail, event, case_of(event, streams, known), known))
    return cases


def verdicts_of(store: Store, cases: Sequence[StoredCase], classifier: Classifier) -> list[Verdict]:
    """The verdict of a model on each stored failure, with what is known of its nodes, in order.

    Raises:
        Unavailable: the database does not answer.
    """
    if not cases:
        return []
    events = [one.event for one in cases]
    verdicts = refine(store, events, classifier.diagnose([one.case for one in cases]))
    found: list[Verdict] = []
    for start in range(0, len(cases), IN_CONTEXT):
        part = slice(start, start + IN_CONTEXT)
        found += in_context(store, events[part], verdicts[part], [one.before for one in cases[part]])
    return found
