"""Retrains on schedule or after new labels, on exactly one process; the gate decides on the result as always."""

import logging
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from service.clock import Clock
from service.db.session import ReadSession, Store
from service.learning.promotion import KEPT_LAYERS
from service.learning.records import RetrainSchedule, StoredLayer
from service.learning.retraining import Candidate, Retraining

TASK: Final = "retrain"
# Longer than a run takes. After a run that failed or was killed, any process tries again after that time.
LEASE: Final = timedelta(hours=1)
BY: Final = "the schedule"
_log = logging.getLogger(__name__)


class ScheduledRetraining:
    """Retrains when it is due, if no other process does.

    Args:
        store: the labels and the registry.
        clock: the current time.
        retraining: creates the retraining, with the signatures of now.
        schedule: when.
        base: gives the id of the packaged model.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        retraining: Callable[[], Retraining],
        schedule: RetrainSchedule,
        base: Callable[[], str],
    ) -> None:
        self._store = store
        self._clock = clock
        self._retraining = retraining
        self._schedule = schedule
        self._base = base
        self._holder = f"retrain-{secrets.token_hex(6)}"

    def __call__(self) -> Candidate | None:
        """Retrain if it is due; None if it is not, or another process does.

        Raises:
            Unavailable: the database does not answer; the next call tries again.
        """
        with self._store.reading() as reading:
            if not self._is_due(reading):
                return None
        turn = self._clock.now().isoformat()
        with self._store.unit_of_work() as work:
            # Asked again under the lease: another process may have stored a candidate since.
            if not work.task_leases.take(TASK, self._holder, due=turn, lease=LEASE) or not self._is_due(work):
                work.task_leases.release(TASK, self._holder)
                return None
        # A run that fails keeps its lease, so that it is not repeated every minute.
        made = self._retraining().retrain(BY, promote=self._schedule.promote)
        with self._store.unit_of_work() as work:
            work.task_leases.done(TASK, self._holder, due=turn)
        _log.info("retrained: %s, the gate's decision is %s", made.layer_id, made.gate.decision)
        return made

    def _is_due(self, reading: ReadSession) -> bool:
        newest = reading.site_layers.newest()
        if newest is not None and self._is_first_of_its_model(reading, newest):
            return reading.feedback.labels_since(None) > 0
        new_labels = reading.feedback.labels_since(None if newest is None else newest.at)
        if not new_labels:
            return False
        if self._schedule.after_labels and new_labels >= self._schedule.after_labels:
            return True
        period = timedelta(days=self._schedule.every_days)
        return bool(period) and (newest is None or self._clock.now() - newest.at >= period)

    def _is_first_of_its_model(self, reading: ReadSession, newest: StoredLayer) -> bool:
        """Whether the stored layers are all of another packaged model, so that they give no verdicts here.

        While an upgrade goes on, processes with the old and the new model must not retrain in turn.
        """
        base = self._base()
        if newest.base in {None, base}:
            return False
        return all(one.base != base for one in reading.site_layers.list(limit=KEPT_LAYERS))
