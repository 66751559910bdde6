"""Stored failures as cases that a model can classify again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from classifiers.case_builder import build_case
from classifiers.contracts import RawCase, Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.errors import NotFound
from service.failures.records import FailureDetail
from service.failures.revised_verdict import event_of, kept_logs
from service.good_runs.collection import last_good_runs
from service.pipeline.context import in_context
from service.pipeline.refine import refine


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
    """A stored failure with its event and its case."""

    detail: FailureDetail
    event: JobCompletion
    case: RawCase


def read_case(store: Store, failure_id: int) -> StoredCase | None:
    """A stored failure; None if it is deleted, or retention removed its event or logs.

    Raises:
        Unavailable: the database does not answer.
    """
    try:
        with store.reading() as reading:
            detail = reading.failures.get(failure_id)
    except NotFound:
        return None
    kept, event = kept_logs(detail), event_of(detail)
    if kept is None or event is None or detail.verdict is None:
        return None
    return StoredCase(detail, event, build_case(event, kept.streams, *last_good_runs(store, [event])))


def verdicts_of(store: Store, cases: Sequence[StoredCase], classifier: Classifier) -> list[Verdict]:
    """The verdict of a model on each stored failure, with what is known of its nodes, in order.

    Raises:
        Unavailable: the database does not answer.
    """
    if not cases:
        return []
    events = [one.event for one in cases]
    verdicts = refine(store, events, classifier.diagnose([one.case for one in cases]))
    return in_context(store, events, verdicts)
