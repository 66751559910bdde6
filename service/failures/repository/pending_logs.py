"""Logs that were not available when a verdict was made: what to retry, and when."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update

from service.failures.records import PendingLog
from service.failures.tables import pending_logs
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader, undamaged
from service.sql.types import utc

_COLUMNS = ("attempt_id", "failure_id", "refs", "tries", "next_at", "until")


class PendingLogRepository(TimedReader):
    """Writes pending logs."""

    def add(self, entries: Sequence[PendingLog]) -> None:
        """Store them; an entry for the same attempt is replaced."""
        if not entries:
            return
        latest = {entry.attempt_id: entry for entry in entries}
        self._connection.execute(delete(pending_logs).where(pending_logs.c.attempt_id.in_(list(latest))))
        rows = [
            (
                entry.attempt_id,
                entry.failure_id,
                pack(list(entry.refs)),
                entry.tries,
                utc(entry.next_at),
                utc(entry.until),
            )
            for entry in latest.values()
        ]
        bulk.append(self._connection, pending_logs, _COLUMNS, rows)

    def due(self, *, limit: int = 100) -> list[PendingLog]:
        """Entries whose `next_at` has passed, oldest first; skips entries that another process has locked.

        Damaged ones are removed: nothing can be read by them.
        """
        rows = self._connection.execute(
            select(pending_logs)
            .where(pending_logs.c.next_at <= self._clock.now())
            .order_by(pending_logs.c.next_at, pending_logs.c.attempt_id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return undamaged(
            rows,
            lambda row: PendingLog(
                row.failure_id, row.attempt_id, tuple(unpack(row.refs)), row.next_at, row.until, row.tries
            ),
            "missing log of attempt",
            self.done,
        )

    def defer(self, attempt_id: int, *, next_at: datetime) -> None:
        """Count an attempt and retry at `next_at`."""
        self._connection.execute(
            update(pending_logs)
            .where(pending_logs.c.attempt_id == attempt_id)
            .values(tries=pending_logs.c.tries + 1, next_at=utc(next_at))
        )

    def done(self, attempt_id: int) -> bool:
        """Remove an entry that needs no further attempt; False if it was removed before."""
        removed = self._connection.execute(delete(pending_logs).where(pending_logs.c.attempt_id == attempt_id))
        return removed.rowcount > 0
