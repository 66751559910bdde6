"""Classifies a range of stored failures again: the part of a run that one worker does.

A range is done in one transaction, which stores the new versions and records the range. A worker that is killed leaves
nothing; a range that two workers classify is stored by the first one. So each failure gets its new version once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from service.db.session import Store
from service.failures.records import FailureFilter
from service.learning.reclassification import AT_ONCE, Change, Reclassification
from service.learning.records import ReclassificationRun, Reclassified

IDS_OF_RANGE: Final = 500  # several batches; a killed worker loses the work of one range


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
