"""Runs a candidate on stored failures next to the model in use; nothing is stored of its verdicts.

`ShadowWatch` continues the run on live traffic, on one process, until the candidate is promoted.
"""

import logging
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from classifiers.contracts import Verdict
from classifiers.diagnoser import Diagnoser
from classifiers.model.site.layer import SiteLayer, SiteLayerError, parse
from service.clock import Clock
from service.db.session import ReadSession, Store
from service.failures.records import FailureFilter, FailureRow
from service.failures.revised_verdict import VerdictAdvisor
from service.learning.records import StoredLayer
from service.learning.shadow_figures import ChangedFailure, ShadowFigures, added, figures
from service.pipeline.stored_cases import NamedClassifier, StoredCase, read_cases, verdicts_of
from service.signatures.reloading_diagnoser import ReloadingDiagnoser

RECENT: Final = 200  # failures of the run before the gate decides
AT_ONCE: Final = 50  # failures that are read together
_HEADLINE: Final = 200  # characters
TASK: Final = "shadow-run"
LEASE: Final = timedelta(minutes=5)
WATCHED_FOR: Final = timedelta(days=14)
_log = logging.getLogger(__name__)


class ShadowRun:
    """Compares two models on failures that no person judged.

    Args:
        store: the failures.
        advisor: makes the advice for a verdict, without history.
    """

    def __init__(self, store: Store, advisor: VerdictAdvisor) -> None:
        self._store = store
        self._advisor = advisor

    def recent(self, before: NamedClassifier, after: NamedClassifier) -> ShadowFigures:
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

    def since(self, start: datetime, before: NamedClassifier, after: NamedClassifier) -> ShadowFigures:
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

    def _compared(self, rows: Sequence[FailureRow], before: NamedClassifier, after: NamedClassifier) -> ShadowFigures:
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
            decision_before=self._advisor(before, stored.event).decision,
            decision_after=self._advisor(after, stored.event).decision,
            gpu_hours=row.gpu_hours_lost,
        )


class ShadowWatch:
    """Compares the newest candidate that was never in use with the model in use, on failures as they are stored.

    Args:
        store: the registry and the failures.
        clock: the current time.
        diagnoser: the model in use.
        shadow: compares two models.
    """

    def __init__(self, store: Store, clock: Clock, diagnoser: ReloadingDiagnoser, shadow: ShadowRun) -> None:
        self._store = store
        self._clock = clock
        self._diagnoser = diagnoser
        self._shadow = shadow
        self._holder = f"shadow-{secrets.token_hex(6)}"

    def __call__(self) -> None:
        """Read the next failures, if a candidate waits and no other process reads them.

        Raises:
            Unavailable: the database does not answer; the next call continues.
        """
        with self._store.reading() as reading:
            candidate = self._candidate(reading)
        if candidate is None:
            return
        turn = self._clock.now().isoformat()
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(TASK, self._holder, due=turn, lease=LEASE):
                return
        known = candidate.gate.shadow or ShadowFigures()
        start = datetime.fromisoformat(known.until) if known.until else candidate.at
        try:
            layer: SiteLayer | None = parse(candidate.text)
        except SiteLayerError as error:
            _log.warning("site layer %s can't be read: %s", candidate.id, error)
            layer = None
        if layer is not None and layer.about.get("base") == self._diagnoser.packaged.id:
            after = Diagnoser(self._diagnoser.packaged, self._diagnoser.catalogue, layer)
            found = self._shadow.since(start, self._diagnoser, after)
        else:
            found = ShadowFigures()
        with self._store.unit_of_work() as work:
            if found.until and work.task_leases.done(TASK, self._holder, due=turn):
                work.site_layers.record_shadow(candidate.id, added(known, found))
        if found.read:
            _log.info("shadow run of %s: %d of %d failures change", candidate.id, found.changed, found.read)

    def _candidate(self, reading: ReadSession) -> StoredLayer | None:
        """The newest candidate, if a person may still promote it and it was never in use."""
        used = {one.layer for one in reading.site_layers.promotions(limit=200)}
        newest = reading.site_layers.newest()
        if newest is None or newest.id in used or newest.gate.decision == "refuse":
            return None
        return newest if newest.at >= self._clock.now() - WATCHED_FOR else None
