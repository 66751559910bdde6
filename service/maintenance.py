"""Scheduled maintenance: retention once a day by exactly one process, sealing, counts, old messages."""

import logging
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from service.clock import Clock
from service.db.retention import PurgeResult
from service.db.session import Store
from service.failures.repository import verdict_seals
from service.periodic import in_portions

log = logging.getLogger(__name__)

TASK = "retention"
LEASE = timedelta(hours=6)
SEALED_BEHIND = timedelta(minutes=10)
UNDELIVERED_FOR = timedelta(days=1)
PASSED_OVER = 5_000  # messages of one transaction
WAITING_FOR = timedelta(days=5)  # longer than the schedule of a delivery


@dataclass(frozen=True, slots=True)
class RetentionDays:
    """Retention periods in days after the job's end (`done`: after delivery or receipt); 0 keeps rows for ever.

    `logs` go first, then `verdicts` (their bodies; the searchable fields stay), then whole `rows`.
    """

    rows: int
    verdicts: int
    logs: int
    done: int


class Retention:
    """Removes rows that are older than their retention period, and prepares the months to come."""

    def __init__(self, store: Store, clock: Clock, days: RetentionDays) -> None:
        self._store = store
        self._clock = clock
        self._days = days
        self._holder = f"retention-{secrets.token_hex(6)}"

    def run_if_due(self) -> PurgeResult | None:
        """Run today's retention; None if it is done already or another process runs it.

        Raises:
            Unavailable: the database or the log storage does not answer; what was removed so far stays removed.
        """
        today = f"{self._clock.now():%Y-%m-%d}"
        with self._store.reading() as reading:
            last = reading.task_leases.last(TASK)
        if last == today:
            return None
        with self._store.unit_of_work() as work:
            if not work.task_leases.take(TASK, self._holder, due=today, lease=LEASE):
                return None
        self._store.prepare_months()
        purged = self._store.purge(
            rows_before=self._before(self._days.rows),
            verdicts_before=self._before(self._days.verdicts),
            logs_before=self._before(self._days.logs),
            done_before=self._before(self._days.done),
        )
        periods = [days for days in (self._days.logs, self._days.rows) if days]
        if periods:  # the rows first: no row refers to a removed object
            day = (self._clock.now() - timedelta(days=min(periods))).date()
            purged = replace(purged, log_objects=self._store.log_bodies.remove_before(day))
        with self._store.unit_of_work() as work:
            work.task_leases.done(TASK, self._holder, due=today)
        if purged != PurgeResult():
            log.info("retention removed %s", purged)
        return purged

    def _before(self, days: int) -> datetime | None:
        return self._clock.now() - timedelta(days=days) if days else None


class Sealing:
    """Seals verdicts (`failures.verdict_seals`) that are ten minutes old: no open transaction writes them any more."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def seal_due(self) -> int:
        """Seal all verdicts that are old enough.

        Returns:
            The number of sealed records.

        Raises:
            Unavailable: the database does not answer.
        """
        until, sealed = self._clock.now() - SEALED_BEHIND, 0

        def seal_some() -> bool:
            nonlocal sealed
            with self._store.unit_of_work() as work:
                count = work.verdict_seals.seal(until)
            sealed += count
            return count == verdict_seals.MOST

        in_portions(seal_some)
        return sealed


class HourlyCounts:
    """Folds completed hours into counts, so that long periods are read quickly."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self) -> None:
        """Fold all completed hours.

        Raises:
            Unavailable: the database does not answer.
        """
        in_portions(self._fold_some)

    def _fold_some(self) -> bool:
        with self._store.unit_of_work() as work:
            return work.rollups.recount(self._clock.now()) > 0


class UndeliverableMessages:
    """For a service without a delivery file: drops messages after a day; a file set until then still gets them.

    What waits for an endpoint of a file that was removed is given up, so that it can be seen, and removed by retention.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self) -> None:
        """Drop them.

        Raises:
            Unavailable: the database does not answer.
        """
        in_portions(self._pass_over_some)
        with self._store.unit_of_work() as work:
            work.deliveries.give_up_older(self._clock.now() - WAITING_FOR, "no delivery file names this endpoint")

    def _pass_over_some(self) -> bool:
        with self._store.unit_of_work() as work:
            return work.outbox.pass_over(self._clock.now() - UNDELIVERED_FOR, limit=PASSED_OVER) == PASSED_OVER
