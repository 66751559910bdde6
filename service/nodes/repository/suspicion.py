"""Exposure and failures of nodes, one row per day, and the suspicion computed from them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, select, tuple_, update

from service.contracts.page import Page
from service.errors import NotFound
from service.nodes.records import DaySums, FleetPrior, NodeDay, NodePlace, NodeRow, NodeSort, NodeSuspicion
from service.nodes.repository.work_queue import COUNTING_LOCK
from service.nodes.tables import failure_rate_priors, node_days, nodes
from service.sql import bulk
from service.sql import paging as cursors
from service.sql.bulk import chunks, upsert
from service.sql.portable import KeyJoin
from service.sql.reader import Reader, record_of
from service.sql.types import clean, short, utc

Key = tuple[str, str]
_CHUNK = 400
_REMOVED = 1_000  # days of one transaction


class SuspicionReader(Reader):
    """Reads node suspicion."""

    def of(self, cluster: str, names: Collection[str]) -> Mapping[str, NodeSuspicion]:
        """The suspicion of each of these nodes of a cluster; unknown nodes are left out.

        The five fields have the names of those in `service.recommend.facts.Suspicion`.
        """
        rows = self.rows([(cluster, name) for name in names])
        return {
            name: NodeSuspicion(row.rate_ratio, row.low, row.high, row.exposure_h, row.blame)
            for (_, name), row in rows.items()
        }

    def rows(self, keys: Collection[Key]) -> dict[Key, NodeRow]:
        """The rows of these nodes (cluster, node); those not stored are left out."""
        wanted = {(clean(cluster), clean(node)[:200]): (cluster, node) for cluster, node in keys}
        found = self._wanted(wanted).select(nodes, "nodes.cluster = {cluster} AND nodes.node = {node}")
        return {wanted[row.cluster, row.node]: _node(row) for row in found}

    def get(self, cluster: str, node: str) -> NodeRow:
        """One node.

        Raises:
            NotFound: the node is unknown.
        """
        found = self.rows([(cluster, node)])
        if not found:
            raise NotFound(f"no node {node[:80]} of cluster {cluster[:80]} is known")
        return found[cluster, node]

    def page(
        self,
        *,
        cluster: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        sort: NodeSort = "-suspicion",
    ) -> Page[NodeRow]:
        """One page of nodes, most suspected first, or by cluster and name.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list and sort.
        """
        cursors.check_limit(limit)
        by_name = sort == "node"
        wanted = select(nodes)
        if cluster is not None:
            wanted = wanted.where(nodes.c.cluster == clean(cluster))
        kind = f"nodes{sort}"
        if by_name:
            wanted = wanted.order_by(nodes.c.cluster, nodes.c.node)
            if cursor is not None:
                wanted = wanted.where(tuple_(nodes.c.cluster, nodes.c.node) > cursors.decode(cursor, kind, str, str))
        else:
            order = (nodes.c.rate_ratio, nodes.c.cluster, nodes.c.node)
            wanted = wanted.order_by(*(column.desc() for column in order))
            if cursor is not None:
                wanted = wanted.where(tuple_(*order) < cursors.decode(cursor, kind, float, str, str))
        found = self._connection.execute(wanted.limit(limit + 1)).all()
        return cursors.page_of(
            found,
            limit,
            _node,
            kind,
            lambda last: (last.cluster, last.node) if by_name else (last.rate_ratio, last.cluster, last.node),
        )

    def days(self, keys: Collection[Key], *, since: int) -> list[NodeDay]:
        """The stored days of these nodes from day `since` on."""
        here = "node_days.cluster = {cluster} AND node_days.node = {node} AND node_days.day >= :since"
        rows = self._wanted(keys).select(node_days, here, since=since)
        return [_day(row) for row in rows]

    def days_of_failures(self, first: int, last: int) -> list[NodeDay]:
        """The stored days from `first` to before `last` of the nodes with a failure attributed to them."""
        span = (node_days.c.day >= first, node_days.c.day < last)
        keys = (node_days.c.cluster, node_days.c.node)
        failing = select(*keys).where(*span).group_by(*keys).having(func.sum(node_days.c.blame) > 0)
        rows = self._connection.execute(select(node_days).where(*span, tuple_(*keys).in_(failing)))
        return [_day(row) for row in rows]

    def work_shares(self, clusters: Collection[str], names: Collection[str]) -> dict[str, float]:
        """The share of the node-hours of these clusters that nodes of these names worked, lately more than long ago."""
        hours, here = func.sum(nodes.c.exposure_h), nodes.c.cluster.in_(sorted({clean(one) for one in clusters}))
        total = float(self._connection.execute(select(hours).where(here)).scalar_one() or 0.0)
        wanted = {clean(name)[:200]: name for name in names}
        found = self._connection.execute(
            select(nodes.c.node, hours.label("hours")).where(here, nodes.c.node.in_(wanted)).group_by(nodes.c.node)
        )
        return {wanted[row.node]: row.hours / total for row in found if row.hours}

    def stalest(self, before: datetime, *, limit: int) -> list[Key]:
        """Nodes whose suspicion was computed before a time, oldest first."""
        found = self._connection.execute(
            select(nodes.c.cluster, nodes.c.node)
            .where(nodes.c.computed_at < utc(before))
            .order_by(nodes.c.computed_at)
            .limit(limit)
        )
        return [(row.cluster, row.node) for row in found]

    def sums(self, cluster: str) -> list[tuple[float, float]]:
        """(weighted failures, exposure in node-hours) of every node of a cluster, with the current decay."""
        found = self._connection.execute(
            select(nodes.c.blame, nodes.c.exposure_h).where(nodes.c.cluster == clean(cluster))
        )
        return [(row.blame, row.exposure_h) for row in found]

    def priors(self) -> dict[str, FleetPrior]:
        """The prior of each cluster that has one."""
        return {
            row.cluster: FleetPrior(row.cluster, row.rate, row.shape, row.nodes, row.computed_at)
            for row in self._connection.execute(select(failure_rate_priors))
        }

    def clusters(self) -> list[str]:
        """Every cluster with nodes, found by skipping through the index."""
        found: list[str] = []
        while True:
            wanted = select(nodes.c.cluster).order_by(nodes.c.cluster).limit(1)
            if found:
                wanted = wanted.where(nodes.c.cluster > found[-1])
            name = self._connection.execute(wanted).scalar()
            if name is None:
                return found
            found.append(name)

    def _wanted(self, keys: Collection[Key]) -> KeyJoin:
        return KeyJoin(self._connection, {"cluster": "text", "node": "text"}, sorted(set(keys)))


class SuspicionRepository(SuspicionReader):
    """Reads and writes node suspicion."""

    def add_days(self, sums: Mapping[tuple[str, str, int], DaySums]) -> None:
        """Add to days of nodes (cluster, node, day), in the order of their keys to avoid deadlocks."""
        insert = upsert(self._connection, node_days)
        added = insert.on_conflict_do_update(
            index_elements=["cluster", "node", "day"],
            set_={
                name: node_days.c[name] + insert.excluded[name] for name in ("exposure_h", "jobs", "failures", "blame")
            },
        )
        rows = [
            {
                "cluster": cluster,
                "node": node,
                "day": day,
                "exposure_h": one.exposure_h,
                "jobs": one.jobs,
                "failures": one.failures,
                "blame": one.blame,
            }
            for (cluster, node, day), one in sorted(sums.items(), key=lambda item: item[0])
        ]
        for part in chunks(rows, _CHUNK):
            self._connection.execute(added, part)

    def set_day(self, cluster: str, node: str, day: int, sums: DaySums | None) -> None:
        """Set a day to the given sums; None removes it and all days before it."""
        here = (node_days.c.cluster == clean(cluster), node_days.c.node == clean(node))
        if sums is None:
            self._connection.execute(delete(node_days).where(*here, node_days.c.day <= day))
            return
        self._connection.execute(
            update(node_days)
            .where(*here, node_days.c.day == day)
            .values(exposure_h=sums.exposure_h, jobs=sums.jobs, failures=sums.failures, blame=sums.blame)
        )

    def remove_days(self, before: int) -> int:
        """Remove at most 1,000 days before a day; returns how many."""
        old = self._connection.execute(
            select(node_days.c.cluster, node_days.c.node, node_days.c.day)
            .where(node_days.c.day < before)
            .order_by(node_days.c.day)
            .limit(_REMOVED)
        ).all()
        for row in old:
            self._connection.execute(
                delete(node_days).where(
                    node_days.c.cluster == row.cluster, node_days.c.node == row.node, node_days.c.day == row.day
                )
            )
        return len(old)

    def put(self, rows: Sequence[NodeRow]) -> None:
        """Store the suspicion of nodes; a repair that was stored meanwhile remains."""
        if not rows:
            return
        insert = upsert(self._connection, nodes)
        names = ("exposure_h", "blame", "failures", "jobs", "rate_ratio", "low", "high", "computed_at")
        latest = func.greatest if bulk.is_postgres(self._connection) else func.max
        changes: dict[str, Any] = {name: insert.excluded[name] for name in names}
        for name in ("last_failure_at", "last_event_at"):
            # The later of the two; SQLite's max() of a null is null.
            changes[name] = func.coalesce(
                latest(nodes.c[name], insert.excluded[name]), nodes.c[name], insert.excluded[name]
            )
        values = [
            {
                "cluster": short(row.cluster),
                "node": short(row.node),
                **{name: getattr(row, name) for name in names},
                "last_failure_at": row.last_failure_at,
                "last_event_at": row.last_event_at,
            }
            for row in sorted(rows, key=lambda row: (row.cluster, row.node))
        ]
        statement = insert.on_conflict_do_update(index_elements=["cluster", "node"], set_=changes)
        for part in chunks(values, _CHUNK):
            self._connection.execute(statement, part)

    def set_places(self, places: Mapping[Key, NodePlace], *, keep_others: bool = False) -> int:
        """Store where nodes are; nodes that are not stored, and places that are known, change nothing.

        Args:
            places: by node (cluster, node).
            keep_others: what a place does not name stays as it is stored; otherwise it is no longer known.

        Returns:
            The number of nodes whose place was changed.
        """
        stored = self.rows(places)
        moved = []
        for (cluster, node), named in sorted(places.items(), key=lambda item: item[0]):
            row = stored.get((cluster, node))
            if row is None:
                continue
            place = named.with_others_of(row.place) if keep_others else named
            if place != row.place:
                moved.append({"of_cluster": clean(cluster), "of_node": clean(node)[:200], **asdict(place)})
        if moved:
            here = (nodes.c.cluster == bindparam("of_cluster"), nodes.c.node == bindparam("of_node"))
            self._connection.execute(update(nodes).where(*here), moved)
        return len(moved)

    def put_prior(self, prior: FleetPrior) -> None:
        """Store the prior of a cluster."""
        insert = upsert(self._connection, failure_rate_priors).values(
            cluster=short(prior.cluster),
            rate=prior.rate,
            shape=prior.shape,
            nodes=prior.nodes,
            computed_at=utc(prior.computed_at),
        )
        names = ("rate", "shape", "nodes", "computed_at")
        self._connection.execute(
            insert.on_conflict_do_update(
                index_elements=["cluster"], set_={name: insert.excluded[name] for name in names}
            )
        )


def remove_unused(connection: Connection, before: datetime) -> int:
    """Remove the nodes that count no jobs any more, and without a failure, event or repair since a time.

    Returns:
        How many were removed.
    """
    bulk.lock(connection, [COUNTING_LOCK])
    last = (nodes.c.last_failure_at, nodes.c.last_event_at, nodes.c.repaired_at)
    old = (column.is_(None) | (column < utc(before)) for column in last)
    return connection.execute(delete(nodes).where(nodes.c.jobs == 0, nodes.c.failures == 0, *old)).rowcount


def _node(row: Row[Any]) -> NodeRow:
    return record_of(NodeRow, row)


def _day(row: Row[Any]) -> NodeDay:
    return record_of(NodeDay, row)
