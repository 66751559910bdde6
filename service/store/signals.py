"""What recent failures point at: a row for each shared thing and failure, so that many jobs over one can be counted.

Only the latest few of a thing are ever read, so that a long outage costs each batch no more than a short one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store import bulk
from service.store.automation_records import NewSignal, Signal
from service.store.tables_automation import signals
from service.store.types import short, utc

LATEST = 200  # of one thing


class Signals:
    """The signals."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, new: Sequence[NewSignal]) -> None:
        """Store them; one that is there stays."""
        rows = [
            {
                "fold_key": short(one.key, 300),
                "failure_id": one.failure_id,
                "at": utc(one.at),
                "user_name": short(one.user),
            }
            for one in sorted(new, key=lambda one: (one.key, one.failure_id))
        ]
        insert = postgresql.insert if bulk.is_postgres(self._connection) else sqlite.insert
        for start in range(0, len(rows), 500):
            self._connection.execute(insert(signals).on_conflict_do_nothing(), rows[start : start + 500])

    def latest(self, since: Mapping[str, datetime]) -> dict[str, list[Signal]]:
        """The latest few of each of these things since a time of its own, newest first."""
        found: dict[str, list[Signal]] = {}
        for key, begin in since.items():
            rows = self._connection.execute(
                select(signals.c.failure_id, signals.c.at, signals.c.user_name)
                .where(signals.c.fold_key == short(key, 300), signals.c.at >= utc(begin))
                .order_by(signals.c.at.desc())
                .limit(LATEST)
            )
            found[key] = [Signal(row.failure_id, row.at, row.user_name or "") for row in rows]
        return found

    def forget(self, before: datetime, *, limit: int = 5_000) -> int:
        """Remove old ones; how many that were."""
        old = select(signals.c.fold_key, signals.c.failure_id).where(signals.c.at < utc(before)).limit(limit)
        rows = self._connection.execute(old).all()
        for row in rows:
            self._connection.execute(
                delete(signals).where(signals.c.fold_key == row.fold_key, signals.c.failure_id == row.failure_id)
            )
        return len(rows)
