"""Builds the cases of events, with what is known of the time before each: the last good run, and recent changes."""

from collections.abc import Sequence
from dataclasses import dataclass

from classifiers.case_builder import build_case
from classifiers.contracts import GoodRun, LogStream, NodeEvent, RawCase
from classifiers.relevance.recent_changes import ALL_NODES, CHANGE, RecentChange
from service.contracts.event import JobCompletion
from service.db.session import Store
from service.good_runs.collection import last_good_runs
from service.nodes.recent_changes import changes_before
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
