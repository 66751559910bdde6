"""Repairs of nodes: earlier failures do not count against the node."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import select

from service.nodes.records import Repair
from service.nodes.repository.suspicion import Key, SuspicionReader
from service.nodes.tables import nodes
from service.sql.bulk import upsert
from service.sql.reader import TimedReader
from service.sql.types import short, utc


class RepairReader(TimedReader):
    """Reads node repairs."""

    def last(self, keys: Collection[Key]) -> Mapping[Key, datetime]:
        """The last repair of each of these nodes (cluster, node); nodes without one are absent."""
        rows = SuspicionReader(self._connection).rows(keys)
        return {key: row.repaired_at for key, row in rows.items() if row.repaired_at is not None}

    def within(self, since: datetime, until: datetime, *, cluster: str | None, most: int) -> list[Repair]:
        """The last repairs of nodes in [since, until), newest first; of one cluster or of all."""
        wanted = select(nodes.c.cluster, nodes.c.node, nodes.c.repaired_at, nodes.c.repair_note).where(
            nodes.c.repaired_at >= utc(since), nodes.c.repaired_at < utc(until)
        )
        if cluster is not None:
            wanted = wanted.where(nodes.c.cluster == short(cluster))
        newest = wanted.order_by(nodes.c.repaired_at.desc(), nodes.c.node).limit(most)
        return [
            Repair(row.cluster, row.node, row.repaired_at, row.repair_note) for row in self._connection.execute(newest)
        ]


class RepairRepository(RepairReader):
    """Reads and writes node repairs."""

    def note(self, cluster: str, node: str, *, at: datetime, actor: str | None, text: str | None) -> bool:
        """Store a repair; False if one at that time or later is known."""
        insert = upsert(self._connection, nodes).values(
            cluster=short(cluster),
            node=short(node),
            exposure_h=0.0,
            blame=0.0,
            failures=0,
            jobs=0,
            rate_ratio=1.0,
            low=0.0,
            high=1.0,
            repaired_at=utc(at),
            repaired_by=short(actor),
            repair_note=short(text, 500),
            computed_at=utc(self._clock.now()),
        )
        changed = {name: insert.excluded[name] for name in ("repaired_at", "repaired_by", "repair_note")}
        statement = insert.on_conflict_do_update(
            index_elements=["cluster", "node"],
            set_=changed,
            where=nodes.c.repaired_at.is_(None) | (nodes.c.repaired_at < insert.excluded.repaired_at),
        ).returning(nodes.c.node)
        return self._connection.execute(statement).first() is not None
