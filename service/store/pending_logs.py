"""Logs that had not arrived when a verdict was made: what to try again, and when."""

from collections.abc import Sequence
from datetime import datetime

from service.store.records import PendingLog


class PendingLogs:
    """The pending logs, one entry an attempt."""

    def add(self, entries: Sequence[PendingLog]) -> None:
        """Store them; an entry for the same attempt is replaced."""
        raise NotImplementedError

    def due(self, *, limit: int = 100) -> list[PendingLog]:
        """Those whose `next_at` has come, oldest first; skips what another process holds in its transaction."""
        raise NotImplementedError

    def defer(self, attempt_id: int, *, next_at: datetime) -> None:
        """Count a try; look again at `next_at`."""
        raise NotImplementedError

    def done(self, attempt_id: int) -> None:
        """Nothing more to try."""
        raise NotImplementedError
