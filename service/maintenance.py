"""On a schedule: what is old goes once a day, by exactly one of however many processes run; verdicts are sealed."""

import logging
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.clock import Clock
from service.db.retention import Purged
from service.db.session import Store
from service.failures.repository import verdict_seals

log = logging.getLogger(__name__)

DUTY = "retention"
LEASE = timedelta(hours=6)
SEALED_BEHIND = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Days:
    """How long is kept what, in days after the job's end (`done`: after it was delivered or received); 0: for ever.

    `logs` go first, then `verdicts` (their bodies; the searchable fields stay), then whole `rows`.
    """

    rows: int
    verdicts: int
    logs: int
    done: int


class Retention:
    """Removes what is older than the settings say."""

    def __init__(self, store: Store, clock: Clock, days: Days) -> None:
        self._store = store
        self._clock = clock
        self._days = days
        self._holder = f"retention-{secrets.token_hex(6)}"

    def tend(self) -> Purged | None:
        """Do today's turn; None where it is done, or another process is at it.

        Raises:
            Unavailable: the database does not answer; what was removed so far stays removed.
        """
        today = f"{self._clock.now():%Y-%m-%d}"
        with self._store.reading() as reading:
            last = reading.task_leases.last(DUTY)
        if last is not None and last >= today:
            return None
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(DUTY, self._holder, due=today, lease=LEASE):
                return None
        purged = self._store.purge(
            rows_before=self._before(self._days.rows),
            verdicts_before=self._before(self._days.verdicts),
            logs_before=self._before(self._days.logs),
            done_before=self._before(self._days.done),
        )
        with self._store.unit_of_work() as work:
            work.task_leases.done(DUTY, self._holder, due=today)
        if purged != Purged():
            log.info("retention removed %s", purged)
        return purged

    def _before(self, days: int) -> datetime | None:
        return self._clock.now() - timedelta(days=days) if days else None


class Sealing:
    """Seals verdicts (`failures.verdict_seals`), some minutes behind, so that no open transaction still writes them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def tend(self) -> int:
        """Seal what is old enough; how many records.

        Raises:
            Unavailable: the database does not answer.
        """
        until, sealed = self._clock.now() - SEALED_BEHIND, 0
        while True:
            with self._store.unit_of_work() as work:
                count = work.verdict_seals.seal(until)
            sealed += count
            if count < verdict_seals.MOST:
                return sealed
