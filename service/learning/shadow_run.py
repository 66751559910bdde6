"""Runs a candidate on stored failures next to the model in use; nothing is stored of its verdicts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from classifiers.contracts import Verdict
from service.db.session import Store
from service.failures.records import FailureFilter, FailureRow
from service.failures.revised_verdict import Advises
from service.learning.shadow_figures import ChangedFailure, ShadowFigures, figures
from service.pipeline.stored_cases import Classifier, StoredCase, read_cases, verdicts_of

RECENT: Final = 200  # failures of the run before the gate decides
AT_ONCE: Final = 50  # failures that are read together
_HEADLINE: Final = 200  # characters


class ShadowRun:
    """Compares two models on failures that no person judged.

    Args:
        store: the failures.
        advises: makes the advice for a verdict, without history.
    """

    def __init__(self, store: Store, advises: Advises) -> None:
        self._store = store
        self._advises = advises

    def recent(self, before: Classifier, after: Classifier) -> ShadowFigures:
        """The newest failures.

        Raises:
            Unavailable: the database does not answer.
        """
        found: list[FailureRow] = []
        cursor: str | None = None
        while len(found) < RECENT:
            with self._store.reading() as reading:
                page = reading.failures.page(FailureFilter(), limit=AT_ONCE, cursor=cursor, sort="-ended_at")
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return self._compared(found[:RECENT], before, after)

    def since(self, start: datetime, before: Classifier, after: Classifier) -> ShadowFigures:
        """The oldest failures that ended after a time: about 50, and all that ended at the same time as one of them.

        Raises:
            Unavailable: the database does not answer.
        """
        found: list[FailureRow] = []
        cursor: str | None = None
        while True:
            with self._store.reading() as reading:
                page = reading.failures.page(FailureFilter(since=start), limit=AT_ONCE, cursor=cursor, sort="ended_at")
            found += [row for row in page.items if row.ended_at > start]
            cursor = page.next_cursor
            if cursor is None:
                return self._compared(found, before, after)
            # The next call starts after the last end: failures of the last one may follow on the next page.
            complete = [row for row in found if row.ended_at < found[-1].ended_at]
            if complete:
                return self._compared(complete, before, after)

    def _compared(self, rows: Sequence[FailureRow], before: Classifier, after: Classifier) -> ShadowFigures:
        read: list[ChangedFailure] = []
        for start in range(0, len(rows), AT_ONCE):
            portion = [row.id for row in rows[start : start + AT_ONCE] if row.source == "machine"]
            cases = read_cases(self._store, portion)
            answers = [verdicts_of(self._store, cases, one) for one in (before, after)]
            read += map(self._pair, cases, *answers)
        return figures(read, max((row.ended_at.isoformat() for row in rows), default=""))

    def _pair(self, stored: StoredCase, before: Verdict, after: Verdict) -> ChangedFailure:
        row = stored.detail.row
        return ChangedFailure(
            failure=row.id,
            headline=row.headline[:_HEADLINE],
            before=f"{before.side} {before.cause}",
            after=f"{after.side} {after.cause}",
            decision_before=self._advises(before, stored.event).decision,
            decision_after=self._advises(after, stored.event).decision,
            gpu_hours=row.gpu_hours_lost,
        )
