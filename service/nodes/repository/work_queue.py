"""Background work on nodes: queued in the transaction that causes it, done later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Connection, delete, select

from service.nodes.tables import node_rechecks, node_work
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.packing import pack, unpack
from service.sql.reader import TimedReader, undamaged
from service.sql.types import utc

WorkKind = Literal["jobs", "failures", "events", "places"]
# Held while counting, so that two processes do not wait for each other's rows one by one.
COUNTING_LOCK = 0x666C656574  # "fleet"
_LEASE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class NodeWork:
    """One work item.

    `body` holds ids of attempts or failures, windows as (cluster, node, since, until), or places as (cluster, node,
    rack, switch, zone, and the block if it is known).
    """

    id: int
    kind: WorkKind
    body: Sequence[Any]


class NodeWorkReader(TimedReader):
    """Reads background work on nodes."""

    def any(self) -> bool:
        """Whether there is any work."""
        return self._connection.execute(select(node_work.c.id).limit(1)).first() is not None

    def any_due(self) -> bool:
        """Whether any failure is due for reassessment."""
        wanted = select(node_rechecks.c.failure_id).where(node_rechecks.c.due_at <= self._clock.now()).limit(1)
        return self._connection.execute(wanted).first() is not None


class NodeWorkRepository(NodeWorkReader):
    """Reads and writes background work on nodes."""

    def add(self, kind: WorkKind, body: Sequence[Any]) -> None:
        """Queue a work item."""
        note(self._connection, kind, body)

    def take(self, limit: int) -> list[NodeWork]:
        """The oldest work items, reserved for this transaction and removed by its commit; damaged ones are left out."""
        bulk.lock(self._connection, [COUNTING_LOCK])
        rows = self._connection.execute(select(node_work).order_by(node_work.c.id).limit(limit)).all()
        if rows:
            self._connection.execute(delete(node_work).where(node_work.c.id.in_([row.id for row in rows])))
        return undamaged(rows, lambda row: NodeWork(row.id, row.kind, tuple(unpack(row.body))), "work on nodes")

    def remove(self, number: int) -> bool:
        """Remove one work item; whether it was there."""
        return self._connection.execute(delete(node_work).where(node_work.c.id == number)).rowcount == 1

    def counting(self) -> None:
        """Lock the counts of nodes until this transaction ends."""
        bulk.lock(self._connection, [COUNTING_LOCK])

    def recheck(self, failures: Mapping[int, datetime]) -> None:
        """Schedule the reassessment of these failures; for one that is scheduled already the earlier time counts."""
        if not failures:
            return
        insert = upsert(self._connection, node_rechecks)
        sooner = insert.on_conflict_do_update(
            index_elements=["failure_id"],
            set_={"due_at": insert.excluded.due_at},
            where=node_rechecks.c.due_at > insert.excluded.due_at,
        )
        rows = [{"failure_id": number, "due_at": utc(at)} for number, at in sorted(failures.items())]
        for part in chunks(rows):
            self._connection.execute(sooner, part)

    def due(self, limit: int) -> dict[int, datetime]:
        """Failures due for reassessment, oldest first, and when their reservation ends: in two minutes."""
        now = self._clock.now()
        wanted = (
            select(node_rechecks.c.failure_id)
            .where(node_rechecks.c.due_at <= now)
            .order_by(node_rechecks.c.due_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        ids = list(self._connection.execute(wanted).scalars())
        until = utc(now + _LEASE)
        if ids:
            self._connection.execute(
                node_rechecks.update().where(node_rechecks.c.failure_id.in_(ids)).values(due_at=until)
            )
        return dict.fromkeys(ids, until)

    def checked(self, reserved: Mapping[int, datetime]) -> None:
        """Remove failures that `due` reserved from the schedule.

        One that was scheduled for an earlier time since, or reserved again after its reservation ended, stays.
        """
        for until in set(reserved.values()):
            for part in chunks([number for number, end in reserved.items() if end == until]):
                self._connection.execute(
                    delete(node_rechecks).where(node_rechecks.c.failure_id.in_(part), node_rechecks.c.due_at == until)
                )


def note(connection: Connection, kind: WorkKind, body: Sequence[Any]) -> None:
    """Queue a work item as one row of the current transaction."""
    if body:
        bulk.append(connection, node_work, ("kind", "body"), [(kind, pack(list(body)))])
