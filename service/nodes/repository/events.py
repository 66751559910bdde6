"""Node events: stored once each, read by node and time."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, exists, func, or_, select, text, tuple_

from service.contracts.page import Page
from service.nodes.records import TEXT_MOST, NewNodeEvent, StoredNodeEvent, Window
from service.nodes.tables import node_events
from service.sql import paging as cursors
from service.sql.bulk import chunks, upsert
from service.sql.portable import KeyJoin
from service.sql.reader import TimedReader, record_of
from service.sql.types import clean, short, utc

_CHUNK = 200
_BATCH = 500
_CHANGES = 500


class NodeEventReader(TimedReader):
    """Reads node events."""

    def any_since(self, at: datetime) -> bool:
        """Whether there is an event at or after `at`, or a window that reaches it; one query."""
        later = exists().where(node_events.c.at >= utc(at))
        reaching = exists().where(node_events.c.until.is_not(None), node_events.c.until >= utc(at))
        return bool(self._connection.execute(select(or_(later, reaching))).scalar_one())

    def within(self, windows: Collection[Window], *, most: int = 20_000) -> list[StoredNodeEvent]:
        """The events of each (cluster, node) in its window, and the windows (maintenance) that overlap it.

        At most the latest `most`, in one query.
        """
        wanted = KeyJoin(
            self._connection,
            {"cluster": "text", "node": "text", "since": "timestamptz", "until": "timestamptz"},
            [(one.cluster, one.name, one.since, one.until) for one in windows],
        )
        here = "node_events.cluster = {cluster} AND node_events.node = {node} AND node_events.at <= {until} AND "
        latest = "ORDER BY at DESC, id DESC LIMIT :most"
        rows = wanted.select(node_events, here + "node_events.at >= {since}", more=latest, most=most)
        if self._connection.execute(_ANY_WINDOW).first() is not None:
            rows += wanted.select(node_events, here + "node_events.until >= {since}", more=latest, most=most)
        return sorted({row.id: _event(row) for row in rows}.values(), key=_place)

    def latest(
        self, nodes: Collection[tuple[str, str]], *, since: datetime, until: datetime
    ) -> dict[tuple[str, str], datetime]:
        """The time of the last event of each (cluster, node) in this period."""
        place = tuple_(node_events.c.cluster, node_events.c.node)
        period = node_events.c.at.between(utc(since), utc(until))
        found: dict[tuple[str, str], datetime] = {}
        for part in chunks(sorted(nodes), _CHUNK):
            query = select(node_events.c.cluster, node_events.c.node, func.max(node_events.c.at))
            rows = self._connection.execute(query.where(place.in_(part), period).group_by(*place.clauses))
            found |= {(row[0], row[1]): row[2] for row in rows}
        return found

    def changes(self, windows: Collection[Window]) -> list[StoredNodeEvent]:
        """The changes (kind `change`) of each (cluster, node) in its window, latest first; at most 500 together."""
        wanted = KeyJoin(
            self._connection,
            {"cluster": "text", "node": "text", "since": "timestamptz", "until": "timestamptz"},
            [(one.cluster, one.name, one.since, one.until) for one in windows],
        )
        here = (
            "node_events.cluster = {cluster} AND node_events.node = {node} AND node_events.kind = 'change' AND "
            "node_events.at >= {since} AND node_events.at <= {until}"
        )
        rows = wanted.select(node_events, here, more="ORDER BY at DESC, id DESC LIMIT :most", most=_CHANGES)
        return [_event(row) for row in rows]

    def page(
        self,
        cluster: str,
        node: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[StoredNodeEvent]:
        """The events of one node in [since, until), newest first.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        wanted = (
            select(node_events)
            .where(node_events.c.cluster == clean(cluster), node_events.c.node == clean(node))
            .order_by(node_events.c.at.desc(), node_events.c.id.desc())
            .limit(limit + 1)
        )
        if since is not None:
            wanted = wanted.where(node_events.c.at >= utc(since))
        if until is not None:
            wanted = wanted.where(node_events.c.at < utc(until))
        if cursor is not None:
            at, last = cursors.decode(cursor, "node-events", str, int)
            try:
                edge = datetime.fromisoformat(at)
            except ValueError:
                raise cursors.bad(cursor) from None
            if edge.tzinfo is None:
                raise cursors.bad(cursor)
            wanted = wanted.where(tuple_(node_events.c.at, node_events.c.id) < (edge, last))
        rows = self._connection.execute(wanted).all()
        return cursors.page_of(rows, limit, _event, "node-events", lambda last: (last.at.isoformat(), last.id))

    def windows(self, cluster: str, node: str, *, since: datetime, limit: int = 50) -> list[StoredNodeEvent]:
        """The windows (maintenance) of a node that end after `since`, latest first."""
        rows = self._connection.execute(
            select(node_events)
            .where(
                node_events.c.cluster == clean(cluster),
                node_events.c.node == clean(node),
                node_events.c.until.is_not(None),
                node_events.c.until >= utc(since),
            )
            .order_by(node_events.c.until.desc())
            .limit(limit)
        )
        return [_event(row) for row in rows]


class NodeEventRepository(NodeEventReader):
    """Reads and writes node events."""

    def add(self, new: Sequence[NewNodeEvent]) -> list[bool]:
        """Store new events; for each, in order, whether it was new. Repetitions within `new` are not."""
        if not new:
            return []
        now = utc(self._clock.now())
        first = {event.key: event for event in reversed(new)}
        insert = (
            upsert(self._connection, node_events)
            .on_conflict_do_nothing(index_elements=["key"])
            .returning(node_events.c.key)
        )
        values = [
            {
                "key": event.key,
                "cluster": short(event.cluster),
                "node": short(event.node),
                "at": utc(event.at),
                "until": None if event.until is None else utc(event.until),
                "received_at": now,
                "source": short(event.source, 60),
                "kind": short(event.kind, 40),
                "severity": event.severity,
                "gpu": event.gpu,
                "resolved": event.resolved,
                "text": clean(event.text[:TEXT_MOST]),
            }
            for _, event in sorted(first.items())
        ]
        made: set[bytes] = set()
        for part in chunks(values, _CHUNK):
            made.update(bytes(row.key) for row in self._connection.execute(insert, part))
        out = []
        for event in new:
            out.append(event.key in made)
            made.discard(event.key)
        return out

    def remove(self, before: datetime) -> int:
        """Remove at most 500 older events, but no window that ends later; returns how many."""
        over = or_(node_events.c.until.is_(None), node_events.c.until < utc(before))
        old = select(node_events.c.id).where(node_events.c.at < utc(before), over).order_by(node_events.c.at)
        ids = list(self._connection.execute(old.limit(_BATCH)).scalars())
        if ids:
            self._connection.execute(delete(node_events).where(node_events.c.id.in_(ids)))
        return len(ids)


_ANY_WINDOW = text("SELECT 1 FROM node_events WHERE until IS NOT NULL LIMIT 1")


def _place(event: StoredNodeEvent) -> tuple[datetime, int]:
    return event.at, event.id


def _event(row: Row[Any]) -> StoredNodeEvent:
    return record_of(StoredNodeEvent, row)
