"""Classifies stored failures again: after a promotion, or with a model that a person names.

A failure gets a new version of its verdict only where something changed. Verdicts of people stay. A run that is
interrupted continues where it stopped, if it is started again with the same model and filters.

Several workers share a run by ranges of ids. A range is done in one transaction, which stores the new versions and
records the range. A worker that is killed leaves nothing; a range that two workers classify is stored by the first one.
So each failure gets its new version once.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from service.clock import Clock
from service.db.session import Store, UnitOfWork
from service.deliveries.records import verdict_message
from service.failures.records import FailureFilter, FailureRow, ListedFailure
from service.failures.revised_verdict import Revised, VerdictAdvisor, differs, revised_wire
from service.learning.records import ReclassificationRun, Reclassified
from service.pipeline.stored_cases import NamedClassifier, read_cases, verdicts_of

AT_ONCE: Final = 200  # failures that are read, classified and stored together
IDS_OF_RANGE: Final = 500  # several batches; a killed worker loses the work of one range
DEFAULT_PER_SECOND: Final = 50.0  # failures, so that live events have the processor
_START: Final = ""  # the place of a run that begins; later it is the end of its last failure, as an ISO time


@dataclass(frozen=True, slots=True)
class Change:
    """The new verdict/1 of a failure, and the number of the version that it replaces."""

    failure_id: int
    version: int
    wire: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How stored failures are classified again.

    Attributes:
        dry_run: count the changes, store nothing.
        notify: send `failure.revised` to hooks and channels.
        per_second: failures a second at most, so that live events have the processor; None: the usual rate.
        progress: called after each portion.
    """

    dry_run: bool = False
    notify: bool = False
    per_second: float | None = None
    progress: Callable[[Reclassified], None] = lambda _: None


DEFAULT_OPTIONS: Final = RunOptions()


class Reclassification:
    """Classifies stored failures again.

    Args:
        store: the failures.
        clock: the current time, and the pauses.
        classifier: the classifier.
        advisor: makes the advice for a verdict.
        revised: called in the transaction of each new version.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        classifier: NamedClassifier,
        advisor: VerdictAdvisor,
        revised: Revised | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._classifier = classifier
        self._advisor = advisor
        self._revised = revised

    def run(
        self, filters: FailureFilter, options: RunOptions = DEFAULT_OPTIONS, *, wanted: str | None = None
    ) -> Reclassified:
        """Classify the failures that match again, oldest first.

        Two processes that do so at a time both read the failures; each new version is stored once.

        Args:
            filters: which failures.
            options: how.
            wanted: what a person asked for, the same in a run that is started again later; None: the filters.

        Raises:
            Unavailable: the database does not answer; starting again continues.
        """
        done = Reclassified()
        name = self._name(wanted or repr(filters))
        cursor: str | None = None
        if not options.dry_run:
            filters = self._resumed(name, filters)
        # At most a second's failures at once, so that live events do not wait for the processor.
        per_second = options.per_second or DEFAULT_PER_SECOND
        at_once = max(1, min(AT_ONCE, math.ceil(per_second)))
        while True:
            began = self._clock.monotonic()
            with self._store.reading() as reading:
                page = reading.failures.page(filters, limit=at_once, cursor=cursor, sort="ended_at")
            changed = self.classify(page.items, done)
            if not options.dry_run:
                place = _START if page.next_cursor is None else page.items[-1].ended_at.isoformat()
                self._store_portion(name, changed, place, notify=options.notify)
            options.progress(done)
            cursor = page.next_cursor
            if cursor is None:
                done.complete = True
                return done
            self._clock.sleep(max(0.0, len(page.items) / per_second - (self._clock.monotonic() - began)))

    @property
    def model(self) -> str:
        """The name of the model, with the id of its site layer."""
        return self._classifier.model

    @property
    def rules(self) -> str:
        """The name and version of the signatures."""
        return self._classifier.rules

    def classify(self, rows: Sequence[FailureRow | ListedFailure], done: Reclassified) -> list[Change]:
        """The failures whose verdict changes, with the new one; counts them in `done`.

        Raises:
            Unavailable: the database does not answer.
        """
        of_machine = [row.id for row in rows if row.source != "person"]
        readable = read_cases(self._store, of_machine)
        done.people += len(rows) - len(of_machine)
        done.unreadable += len(of_machine) - len(readable)
        verdicts = verdicts_of(self._store, readable, self._classifier)
        changed = []
        for one, verdict in zip(readable, verdicts, strict=True):
            done.read += 1
            before = one.detail.row
            if differs(before, verdict):
                done.changed += 1
                done.moves[f"{before.side} {before.cause}", f"{verdict.side} {verdict.cause}"] += 1
                wire = revised_wire(one.detail, verdict, one.event, self._advisor(verdict, one.event))
                changed.append(Change(before.id, before.version, wire))
        return changed

    def store_changes(self, work: UnitOfWork, changed: Sequence[Change], *, notify: bool) -> None:
        """Store new versions; a failure that has another version meanwhile keeps it."""
        if not changed:
            return
        stored = set(work.failures.revise_unchanged({one.failure_id: (one.version, one.wire) for one in changed}))
        new = {one.failure_id: one.wire for one in changed if one.failure_id in stored}
        if self._revised is not None:
            self._revised(work, new)
        if notify:
            work.outbox.add([verdict_message("failure.revised", number, wire) for number, wire in new.items()])

    def _store_portion(self, name: str, changed: Sequence[Change], place: str, *, notify: bool) -> None:
        """Store the new versions and the place, in one transaction."""
        with self._store.unit_of_work() as work:
            self.store_changes(work, changed, notify=notify)
            work.task_leases.note(name, place)

    def _resumed(self, name: str, filters: FailureFilter) -> FailureFilter:
        """The filters from where an interrupted run stopped."""
        with self._store.reading() as reading:
            place = reading.task_leases.last(name)
        if not place:
            return filters
        stopped = datetime.fromisoformat(place)
        return replace(filters, since=stopped if filters.since is None else max(filters.since, stopped))

    def _name(self, wanted: str) -> str:
        return "reclassify-" + hashlib.sha256(repr((self.model, self.rules, wanted)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Range:
    """The failures with first ≤ id < until that match; `run_id` None: a dry run, which stores nothing."""

    run_id: int | None
    filters: FailureFilter
    first: int
    until: int
    notify: bool = False


def classify_range(store: Store, again: Reclassification, one: Range) -> Reclassified | None:
    """Classify a range again, and store what changed; None if the range was done already.

    Raises:
        Unavailable: the database does not answer; nothing of the range is stored.
    """
    with store.reading() as reading:
        if one.run_id is not None and reading.reclassification_runs.is_done(one.run_id, one.first):
            return None
        rows = reading.failure_ranges.between(one.filters, one.first, one.until)
    done = Reclassified()
    changed: list[Change] = []
    for start in range(0, len(rows), AT_ONCE):
        changed += again.classify(rows[start : start + AT_ONCE], done)
    if one.run_id is None:
        return done
    with store.unit_of_work() as work:
        if not work.reclassification_runs.mark(one.run_id, one.first, done):
            return None
        again.store_changes(work, changed, notify=one.notify)
    return done


def ranges(run: ReclassificationRun, size: int = IDS_OF_RANGE) -> Iterator[tuple[int, int]]:
    """The ranges of a run: the first id of each, and the one after its last."""
    for first in range(run.first, run.last + 1, size):
        yield first, min(first + size, run.last + 1)
