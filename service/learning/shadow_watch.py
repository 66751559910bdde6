"""Continues the shadow run of a candidate on live traffic, on one process, until it is promoted."""

import logging
import secrets
from datetime import datetime, timedelta
from typing import Final

from classifiers.diagnoser import Diagnoser
from classifiers.model.site.layer import SiteLayer, SiteLayerError, parse
from service.clock import Clock
from service.db.session import ReadSession, Store
from service.learning.records import StoredLayer
from service.learning.shadow_figures import ShadowFigures, added
from service.learning.shadow_run import ShadowRun
from service.signatures.reloading_diagnoser import ReloadingDiagnoser

TASK: Final = "shadow-run"
LEASE: Final = timedelta(minutes=5)
WATCHED_FOR: Final = timedelta(days=14)
_log = logging.getLogger(__name__)


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
        newest = next(iter(reading.site_layers.list(limit=1)), None)
        if newest is None or newest.id in used or newest.gate.decision == "refuse":
            return None
        return newest if newest.at >= self._clock.now() - WATCHED_FOR else None
