"""From attempts with their logs to verdicts: the same steps for new events, late logs and stored failures."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from classifiers.contracts import LogStream, RawCase, Verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.pipeline.cases import KnownBefore, case_of, known_before
from service.pipeline.context import in_context
from service.pipeline.refine import refine


class Classifier(Protocol):
    """The classifier that is needed here (classifiers.diagnoser.Diagnoser)."""

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict per case, in order."""
        ...


@dataclass(frozen=True)
class ReadAttempt:
    """An attempt with its logs as read, and what is known of the time before it."""

    event: JobCompletion
    streams: Sequence[LogStream]
    before: KnownBefore

    @cached_property
    def case(self) -> RawCase:
        """Its case; built once, when it is classified first."""
        return case_of(self.event, self.streams, self.before)


def with_earlier(store: Store, read: Sequence[tuple[JobCompletion, Sequence[LogStream]]]) -> list[ReadAttempt]:
    """Attempts with what is known of the time before each, in order.

    Args:
        store: the database.
        read: the event and the logs of each.

    Raises:
        Unavailable: the database does not answer.
    """
    before = known_before(store, [event for event, _ in read])
    return [ReadAttempt(event, streams, known) for (event, streams), known in zip(read, before, strict=True)]


def _untimed(_: str) -> AbstractContextManager[None]:
    return nullcontext()


def verdicts_of(
    store: Store,
    classifier: Classifier,
    attempts: Sequence[ReadAttempt],
    *,
    context_at_once: int | None = None,
    timed: Callable[[str], AbstractContextManager[None]] = _untimed,
) -> list[Verdict]:
    """The verdict on each attempt, with the refined fingerprint and the fleet evidence, in order.

    Args:
        store: the database.
        classifier: the classifier.
        attempts: the attempts.
        context_at_once: for how many attempts fleet evidence is read together; None: for all.
        timed: measures the stages `classify` and `context`.

    Raises:
        Unavailable: the database does not answer.
    """
    if not attempts:
        return []
    with timed("classify"):
        verdicts = classifier.diagnose([one.case for one in attempts])
    events = [one.event for one in attempts]
    verdicts = refine(store, events, verdicts)
    size = context_at_once or len(attempts)
    found: list[Verdict] = []
    with timed("context"):
        for start in range(0, len(attempts), size):
            part = slice(start, start + size)
            found += in_context(store, events[part], verdicts[part], [one.before for one in attempts[part]])
    return found
