"""From attempts with their logs to verdicts: the same steps for new events, late logs and stored failures.

A case is built with what is known of the time before: the last good run, and recent changes of the platform. After the
classifier, fingerprints are refined by the splits of groups, and verdicts updated with the evidence of the fleet, which
is read once for many failures.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from classifiers.case_builder import build_case
from classifiers.contracts import GoodRun, LogStream, NodeEvent, RawCase, Verdict
from classifiers.fleet_evidence.recent_changes import ALL_NODES, CHANGE, RecentChange, with_changes
from classifiers.fleet_evidence.verdict_update import update_verdict
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.good_runs.collection import last_good_runs
from service.groups.repository.groups import refined
from service.nodes.failure_evidence import FailedAttempt, read
from service.nodes.recent_changes import changes_before
from service.times import bounded

_MOST_TIMES = 4  # a split kind may be split again


@dataclass(frozen=True, slots=True)
class PriorFacts:
    """What is known of the time before a failed attempt.

    Attributes:
        good_run: the last run of the same job that succeeded, None without one.
        changes: the changes of the platform in the day before its end, latest first.
    """

    good_run: GoodRun | None
    changes: tuple[RecentChange, ...]


def known_before(store: Store, events: Sequence[JobCompletion]) -> list[PriorFacts]:
    """What is known of the time before each event, in order.

    Raises:
        Unavailable: the database does not answer.
    """
    with store.reading() as reading:
        runs = last_good_runs(reading, events)
        changes = changes_before(reading, [(one.cluster, one.nodes, bounded(one.ended_at)) for one in events])
    return [
        PriorFacts(run, tuple(RecentChange(one.node, one.at, one.text) for one in found))
        for run, found in zip(runs, changes, strict=True)
    ]


def case_of(event: JobCompletion, streams: Sequence[LogStream], known: PriorFacts) -> RawCase:
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
    before: PriorFacts

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


def refine(store: Store, events: Sequence[JobCompletion], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdict of each event with the refined fingerprint of its group.

    Raises:
        Unavailable: the database does not answer.
    """
    prints = [verdict.fingerprint for verdict in verdicts]
    for _ in range(_MOST_TIMES):
        with store.reading() as reading:
            splits = reading.groups.splits(set(prints))
        if not splits:
            break
        prints = [
            refined(
                fingerprint,
                {
                    "cluster": event.cluster,
                    "queue": event.queue,
                    "team": event.team,
                    "user": event.user,
                    "node": verdict.suspect.node if verdict.suspect is not None else None,
                },
                splits,
            )
            for fingerprint, event, verdict in zip(prints, events, verdicts, strict=True)
        ]
    return [
        verdict if verdict.fingerprint == fingerprint else replace(verdict, fingerprint=fingerprint)
        for verdict, fingerprint in zip(verdicts, prints, strict=True)
    ]


def in_context(
    store: Store, events: Sequence[JobCompletion], verdicts: Sequence[Verdict], before: Sequence[PriorFacts]
) -> list[Verdict]:
    """The verdict of each event, updated with the fleet evidence and the changes before it, in order.

    Args:
        store: the database.
        events: the events.
        verdicts: the verdict of each.
        before: what is known of the time before each.

    Raises:
        Unavailable: the database does not answer.
    """
    if not events:
        return list(verdicts)
    attempts = [
        FailedAttempt(event.cluster, event.job_id, event.nodes, event.user, bounded(event.ended_at), verdict)
        for event, verdict in zip(events, verdicts, strict=True)
    ]
    with store.reading() as reading:
        evidence = read(reading, attempts)
    return [
        with_changes(update_verdict(verdict, known), earlier.changes, known.ended_at)
        for verdict, known, earlier in zip(verdicts, evidence, before, strict=True)
    ]


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
