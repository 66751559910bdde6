"""Incident signals: one row for each shared resource and failure, from which incidents are detected.

Only the latest signals of a resource are read, so that a long outage costs a batch no more than a short one.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, select

from service.incidents.records import NewSignal, Signal
from service.incidents.tables import incident_signals
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.reader import Reader
from service.sql.types import short, utc

MOST_SIGNALS = 200  # per resource
_DELETED = 5_000  # signals of one transaction
_COLUMNS = ("fold_key", "failure_id", "at", "user_name")


class IncidentSignalReader(Reader):
    """Reads incident signals."""

    def latest(self, since: Mapping[str, datetime]) -> dict[str, list[Signal]]:
        """The latest signals of each resource since its given time, newest first."""
        found: dict[str, list[Signal]] = {key: [] for key in since}
        if not since:
            return found
        names = {short(key, 300): key for key in since}
        earliest = utc(min(since.values()))
        if bulk.is_postgres(self._connection):
            # Reads a small part of the index of each resource, however long its outage.
            rows = self._connection.exec_driver_sql(
                "SELECT wanted.key, one.failure_id, one.at, one.user_name FROM unnest(%s::text[]) AS wanted (key) "
                "CROSS JOIN LATERAL (SELECT failure_id, at, user_name FROM signals "
                "WHERE fold_key = wanted.key AND at >= %s ORDER BY at DESC LIMIT %s) AS one",
                (list(names), earliest, MOST_SIGNALS),
            ).all()
        else:
            query = (
                select(
                    incident_signals.c.fold_key,
                    incident_signals.c.failure_id,
                    incident_signals.c.at,
                    incident_signals.c.user_name,
                )
                .where(incident_signals.c.fold_key == bindparam("key"), incident_signals.c.at >= earliest)
                .order_by(incident_signals.c.at.desc())
                .limit(MOST_SIGNALS)
            )
            rows = [row for name in names for row in self._connection.execute(query, {"key": name})]
        for key, failure_id, at, user in rows:
            if at >= since[names[key]]:
                found[names[key]].append(Signal(failure_id, utc(at), user or ""))
        return found

    def any_before(self, before: datetime) -> bool:
        """Whether there are older signals."""
        wanted = select(incident_signals.c.failure_id).where(incident_signals.c.at < utc(before)).limit(1)
        return self._connection.execute(wanted).first() is not None


class IncidentSignalRepository(IncidentSignalReader):
    """Reads and writes incident signals."""

    def add(self, new: Sequence[NewSignal], *, again: bool = False) -> None:
        """Store signals; one per failure and resource. With `again` some may be stored already."""
        rows = [(short(one.key, 300), one.failure_id, utc(one.at), short(one.user)) for one in new]
        if not again:
            bulk.append(self._connection, incident_signals, _COLUMNS, rows)
            return
        for row in rows:
            named = dict(zip(_COLUMNS, row, strict=True))
            self._connection.execute(
                upsert(self._connection, incident_signals).values(**named).on_conflict_do_nothing()
            )

    def delete_before(self, before: datetime) -> int:
        """Delete at most 5,000 older signals; returns how many."""
        old = (
            select(incident_signals.c.fold_key, incident_signals.c.failure_id)
            .where(incident_signals.c.at < utc(before))
            .limit(_DELETED)
        )
        rows = self._connection.execute(old).all()
        for row in rows:
            self._connection.execute(
                delete(incident_signals).where(
                    incident_signals.c.fold_key == row.fold_key, incident_signals.c.failure_id == row.failure_id
                )
            )
        return len(rows)
