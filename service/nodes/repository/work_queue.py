"""What the fleet's background has still to do: written in the transaction that caused it, worked off later."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, delete, select

from service.clock import Clock
from service.nodes.tables import fleet_rechecks, fleet_work
from service.sql import bulk
from service.sql.packing import pack, unpack
from service.sql.types import utc
from service.sql.upsert import upsert

WorkKind = Literal["jobs", "failures", "events"]
# Held by whoever counts, so that two processes do not wait for each other's rows one by one.
_COUNTING_LOCK = 0x666C656574  # "fleet"
_LEASE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to do: `body` holds ids of attempts or failures, or windows as (cluster, node, since, until)."""

    id: int
    kind: WorkKind
    body: Sequence[Any]


class NodeWorkReader:
    """Reads background work on nodes."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def any(self) -> bool:
        """Whether there is anything to do."""
        return self._connection.execute(select(fleet_work.c.id).limit(1)).first() is not None

    def any_due(self) -> bool:
        """Whether any failure is to be looked at again by now."""
        wanted = select(fleet_rechecks.c.failure_id).where(fleet_rechecks.c.due_at <= self._clock.now()).limit(1)
        return self._connection.execute(wanted).first() is not None


class NodeWorkRepository(NodeWorkReader):
    """Reads and writes background work on nodes."""

    def add(self, kind: WorkKind, body: Sequence[Any]) -> None:
        """Remember to do this."""
        note(self._connection, kind, body)

    def take(self, limit: int) -> list[Work]:
        """The oldest things to do, which this transaction is then the only one to do; gone with its commit."""
        bulk.lock(self._connection, [_COUNTING_LOCK])
        rows = self._connection.execute(select(fleet_work).order_by(fleet_work.c.id).limit(limit)).all()
        if rows:
            self._connection.execute(delete(fleet_work).where(fleet_work.c.id.in_([row.id for row in rows])))
        return [Work(row.id, row.kind, unpack(row.body)) for row in rows]

    def counting(self) -> None:
        """Wait until nobody else changes what is counted of nodes; held until the transaction ends."""
        bulk.lock(self._connection, [_COUNTING_LOCK])

    def recheck(self, failures: Mapping[int, datetime]) -> None:
        """Look at these failures again, each at its time; one that is to be looked at already comes at the earlier."""
        if not failures:
            return
        insert = upsert(self._connection, fleet_rechecks)
        sooner = insert.on_conflict_do_update(
            index_elements=["failure_id"],
            set_={"due_at": insert.excluded.due_at},
            where=fleet_rechecks.c.due_at > insert.excluded.due_at,
        )
        rows = [{"failure_id": number, "due_at": utc(at)} for number, at in sorted(failures.items())]
        for start in range(0, len(rows), 500):
            self._connection.execute(sooner, rows[start : start + 500])

    def due(self, limit: int) -> list[int]:
        """Failures whose time has come, oldest first; nobody else gets them for two minutes."""
        now = self._clock.now()
        wanted = (
            select(fleet_rechecks.c.failure_id)
            .where(fleet_rechecks.c.due_at <= now)
            .order_by(fleet_rechecks.c.due_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(self._connection.execute(wanted).scalars())
        if ids:
            self._connection.execute(
                fleet_rechecks.update().where(fleet_rechecks.c.failure_id.in_(ids)).values(due_at=now + _LEASE)
            )
        return ids

    def checked(self, failures: Collection[int]) -> None:
        """These were looked at."""
        ids = list(failures)
        for start in range(0, len(ids), 500):
            self._connection.execute(
                delete(fleet_rechecks).where(fleet_rechecks.c.failure_id.in_(ids[start : start + 500]))
            )


def note(connection: Connection, kind: WorkKind, body: Sequence[Any]) -> None:
    """Remember, in the transaction at hand, that this is to be done: one row."""
    if body:
        bulk.append(connection, fleet_work, ("kind", "body"), [(kind, pack(list(body)))])
