"""From attempts with their logs to verdicts: the same steps for new events, late logs and stored failures."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from classifiers.case_builder import build_case
from classifiers.contracts import GoodRun, LogStream, NodeEvent, RawCase, Verdict
from classifiers.relevance.recent_changes import ALL_NODES, CHANGE, RecentChange
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.good_runs.collection import last_good_runs
from service.nodes.recent_changes import changes_before
from service.pipeline.context import in_context
from service.pipeline.refine import refine
from service.times import bounded


@dataclass(frozen=True, slots=True)
class KnownBefore:
    """What is known of the time before a failed attempt.

    Attributes:
        good_run: the last run of the same job that succeeded, None without one.
        changes: the changes of the platform in the day before its end, latest first.
    """

    good_run: GoodRun | None
    changes: tuple[RecentChange, ...]


def known_before(store: Store, events: Sequence[JobCompletion]) -> list[KnownBefore]:
    """What is known of the time before each event, in order.

    Raises:
        Unavailable: the database does not answer.
    """
    runs = last_good_runs(store, events)
    with store.reading() as reading:
        changes = changes_before(reading, [(one.cluster, one.nodes, bounded(one.ended_at)) for one in events])
    return [
        KnownBefore(run, tuple(RecentChange(one.node, one.at, one.text) for one in found))
        for run, found in zip(runs, changes, strict=True)
    ]


def case_of(event: JobCompletion, streams: Sequence[LogStream], known: KnownBefore) -> RawCase:
    """The case of an event with its logs."""
    changes = [
        NodeEvent(one.text, one.at, None if one.node == ALL_NODES else one.node, CHANGE) for one in known.changes
    ]
    return build_case(event, streams, known.good_run, changes)


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
