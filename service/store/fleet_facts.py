"""What the fleet reads of attempts and failures, many at once: where they ran, what was said of them, who was near."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store import bulk
from service.store.fleet_records import Blame, Judged, RanJob, Window
from service.store.job_rows import nodes_of
from service.store.packing import pack, unpack
from service.store.tables import failure_nodes, failures, jobs
from service.store.tables_fleet import blames
from service.store.types import clean, utc
from service.store.wanted import Wanted

_CHUNK = 500


class FleetFacts:
    """Attempts and failures as the fleet sees them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ran(self, ids: Collection[int]) -> list[RanJob]:
        """These attempts, in the order of their ids; those that are gone are left out."""
        out = []
        columns = (jobs.c.id, jobs.c.cluster, jobs.c.nodes, jobs.c.started_at, jobs.c.ended_at, jobs.c.status)
        for chunk in _chunks(ids):
            rows = self._connection.execute(
                select(*columns, jobs.c.failure_id, jobs.c.clock_suspect)
                .where(jobs.c.id.in_(chunk))
                .order_by(jobs.c.id)
            )
            out += [
                RanJob(
                    row.id,
                    row.cluster,
                    nodes_of(row.nodes),
                    row.started_at,
                    row.ended_at,
                    row.status,
                    row.failure_id,
                    row.clock_suspect,
                )
                for row in rows
            ]
        return out

    def judged(self, ids: Collection[int]) -> list[Judged]:
        """These failures with their verdicts in force, in the order of their ids; those that are gone are left out."""
        out = []
        for chunk in _chunks(ids):
            rows = self._connection.execute(
                select(failures, jobs.c.nodes, jobs.c.job_id)
                .join(jobs, jobs.c.id == failures.c.id)
                .where(failures.c.id.in_(chunk))
                .order_by(failures.c.id)
            )
            out += [_judged(row, nodes_of(row.nodes), row.job_id) for row in rows]
        return out

    def on_nodes(self, windows: Sequence[Window], *, most: int = 5_000) -> list[Judged]:
        """Failures that ran on one of these nodes (window's name) and ended in its window; the latest `most`."""
        return self._found(
            windows,
            "failure_nodes.node = {name} AND failure_nodes.ended_at BETWEEN {since} AND {until}",
            most,
        )

    def alike(self, windows: Sequence[Window], *, most: int = 5_000) -> list[Judged]:
        """Failures with one of these fingerprints (window's name) that ended in its window; the latest `most`."""
        wanted = self._wanted(windows)
        rows = wanted.select(
            failures,
            "failures.fingerprint = {name} AND failures.ended_at BETWEEN {since} AND {until}",
            more="ORDER BY failures.ended_at DESC, failures.id DESC LIMIT :most",
            most=most,
        )
        return self._whole({row.id: row for row in rows})

    def ids_on_nodes(self, windows: Sequence[Window], *, most: int = 5_000) -> list[int]:
        """Ids of failures that ran on one of these nodes and ended in its window, the latest first."""
        rows = self._wanted(windows).select(
            failure_nodes,
            "failure_nodes.node = {name} AND failure_nodes.ended_at BETWEEN {since} AND {until}",
            more="ORDER BY failure_nodes.ended_at DESC LIMIT :most",
            most=most,
        )
        return list(dict.fromkeys(row.failure_id for row in rows))

    def blames(self, ids: Collection[int]) -> dict[int, Blame]:
        """What these failures add to their nodes now, by id."""
        out = {}
        for chunk in _chunks(ids):
            for row in self._connection.execute(select(blames).where(blames.c.failure_id.in_(chunk))):
                cluster, ended_at, weights = unpack(row.body)
                out[row.failure_id] = Blame(row.failure_id, cluster, datetime.fromisoformat(ended_at), dict(weights))
        return out

    def put_blames(self, new: Sequence[Blame]) -> None:
        """What these failures add from now on; one without weights adds nothing."""
        empty = [one.failure_id for one in new if not one.weights]
        for chunk in _chunks(empty):
            self._connection.execute(delete(blames).where(blames.c.failure_id.in_(chunk)))
        rows = [
            {
                "failure_id": one.failure_id,
                "body": pack([one.cluster, utc(one.ended_at).isoformat(), dict(one.weights)]),
            }
            for one in new
            if one.weights
        ]
        dialect = postgresql if bulk.is_postgres(self._connection) else sqlite
        insert = dialect.insert(blames)
        statement = insert.on_conflict_do_update(index_elements=["failure_id"], set_={"body": insert.excluded.body})
        for start in range(0, len(rows), _CHUNK):
            self._connection.execute(statement, rows[start : start + _CHUNK])

    def _found(self, windows: Sequence[Window], where: str, most: int) -> list[Judged]:
        rows = self._wanted(windows).select(
            failure_nodes, where, more="ORDER BY failure_nodes.ended_at DESC LIMIT :most", most=most
        )
        found: dict[int, Row[Any]] = {}
        for chunk in _chunks({row.failure_id for row in rows}):
            clusters = {clean(window.cluster) for window in windows}
            for row in self._connection.execute(select(failures).where(failures.c.id.in_(chunk))):
                if row.cluster in clusters:
                    found[row.id] = row
        return self._whole(found)

    def _whole(self, rows: dict[int, Row[Any]]) -> list[Judged]:
        """With the nodes of each (those of the fingerprint's list, not of the whole job's record)."""
        where: dict[int, list[str]] = defaultdict(list)
        job_ids: dict[int, str] = {}
        for chunk in _chunks(rows):
            for row in self._connection.execute(
                select(jobs.c.id, jobs.c.job_id, jobs.c.nodes).where(jobs.c.id.in_(chunk))
            ):
                where[row.id] = list(nodes_of(row.nodes))
                job_ids[row.id] = row.job_id
        return [_judged(row, tuple(where[number]), job_ids.get(number, "")) for number, row in sorted(rows.items())]

    def _wanted(self, windows: Sequence[Window]) -> Wanted:
        return Wanted(
            self._connection,
            {"cluster": "text", "name": "text", "since": "timestamptz", "until": "timestamptz"},
            [(one.cluster, one.name, one.since, one.until) for one in windows],
        )


def _chunks(ids: Collection[int]) -> list[list[int]]:
    ordered = sorted(ids)
    return [ordered[start : start + _CHUNK] for start in range(0, len(ordered), _CHUNK)]


def _judged(row: Row[Any], nodes: tuple[str, ...], job_id: str) -> Judged:
    return Judged(
        id=row.id,
        cluster=row.cluster,
        job_id=job_id,
        ended_at=row.ended_at,
        user=row.user_name,
        side=row.side,
        cause=row.cause,
        confidence=row.confidence,
        abstained=row.abstained,
        fingerprint=row.fingerprint,
        suspect_node=row.suspect_node,
        nodes=nodes,
        source=row.source,
    )
