"""Facts of attempts and failures for the node statistics, read in bulk: nodes, verdicts, related failures."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, TextualSelect, delete, select, text

from service.failures.tables import failure_nodes, failures, verdicts
from service.jobs.tables import jobs
from service.nodes.records import CountedAttempt, FailureWeights, JudgedFailure, Window
from service.nodes.tables import failure_weights
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.packing import pack, unpack
from service.sql.portable import KeyJoin, Kind
from service.sql.reader import Reader, record_of, undamaged
from service.sql.types import clean, names_of, utc


class FailureFactReader(Reader):
    """Reads failure facts."""

    def ran(self, ids: Collection[int]) -> list[CountedAttempt]:
        """These attempts, ordered by id; deleted ones are left out."""
        out = []
        columns = (jobs.c.id, jobs.c.cluster, jobs.c.nodes, jobs.c.started_at, jobs.c.ended_at, jobs.c.status)
        for chunk in chunks(sorted(ids)):
            rows = self._connection.execute(
                select(*columns, jobs.c.failure_id, jobs.c.clock_suspect)
                .where(jobs.c.id.in_(chunk))
                .order_by(jobs.c.id)
            )
            out += [
                CountedAttempt(
                    row.id,
                    row.cluster,
                    _nodes(row.nodes),
                    row.started_at,
                    row.ended_at,
                    row.status,
                    row.failure_id,
                    row.clock_suspect,
                )
                for row in rows
            ]
        return out

    def judged(self, ids: Collection[int]) -> list[JudgedFailure]:
        """These failures with their current verdicts, ordered by id; deleted ones are left out."""
        out = []
        for chunk in chunks(sorted(ids)):
            rows = self._connection.execute(
                select(failures, jobs.c.nodes, jobs.c.job_id)
                .join(jobs, jobs.c.id == failures.c.id)
                .where(failures.c.id.in_(chunk))
                .order_by(failures.c.id)
            )
            out += [_judged(row, _nodes(row.nodes), row.job_id) for row in rows]
        return out

    def on_nodes(self, windows: Sequence[Window], *, each: int = 20) -> list[JudgedFailure]:
        """Platform-side failures with one of these nodes (window's name) as suspect, by end within its window.

        Only decided verdicts among the latest `each` failures on the node; nodes of the same name on other clusters are
        left out.
        """
        # The inner query reads one index and stops; only then are the failures themselves looked up.
        return self._latest(
            windows,
            "SELECT failure_nodes.failure_id AS id FROM failure_nodes WHERE failure_nodes.node = {name}"
            " AND failure_nodes.ended_at >= {since} AND failure_nodes.ended_at <= {until}"
            " ORDER BY failure_nodes.ended_at DESC, failure_nodes.failure_id DESC LIMIT :each",
            "failures.suspect_node = {name} AND failures.cluster = {cluster} AND failures.side <> 'user'"
            " AND NOT failures.abstained",
            each,
        )

    def alike(self, windows: Sequence[Window], *, each: int = 50) -> list[JudgedFailure]:
        """Failures with one of these fingerprints (window's name) that ended in its window, on any cluster.

        The latest `each` of every window.
        """
        return self._latest(
            windows,
            "SELECT near.id FROM failures AS near WHERE near.fingerprint = {name}"
            " AND near.ended_at >= {since} AND near.ended_at <= {until}"
            " ORDER BY near.ended_at DESC, near.id DESC LIMIT :each",
            "1 = 1",
            each,
        )

    def ids_on_nodes(self, windows: Sequence[Window], *, most: int = 5_000) -> list[int]:
        """Ids of failures that ran on one of these nodes and ended in its window, latest first."""
        rows = self._wanted(windows).select(
            failure_nodes,
            "failure_nodes.node = {name} AND failure_nodes.ended_at BETWEEN {since} AND {until}",
            more="ORDER BY failure_nodes.ended_at DESC LIMIT :most",
            most=most,
        )
        return list(dict.fromkeys(row.failure_id for row in rows))

    def bodies(self, ids: Collection[int]) -> dict[int, Mapping[str, Any]]:
        """The current verdict/1 of each of these failures, by id; those removed by retention are left out."""
        out: dict[int, Mapping[str, Any]] = {}
        for chunk in chunks(sorted(ids)):
            rows = self._connection.execute(
                select(verdicts.c.failure_id, verdicts.c.body)
                .join(failures, (failures.c.id == verdicts.c.failure_id) & (failures.c.version == verdicts.c.version))
                .where(verdicts.c.failure_id.in_(chunk), verdicts.c.body.is_not(None))
            )
            out |= {row.failure_id: unpack(row.body) for row in rows}
        return out

    def weights(self, ids: Collection[int]) -> dict[int, FailureWeights]:
        """What these failures currently add to their nodes, by id."""
        out: dict[int, FailureWeights] = {}
        for chunk in chunks(sorted(ids)):
            rows = self._connection.execute(select(failure_weights).where(failure_weights.c.failure_id.in_(chunk)))
            out |= {one.failure_id: one for one in undamaged(rows, _weights_of, "weights of failure")}
        return out

    def _latest(self, windows: Sequence[Window], inner: str, where: str, each: int) -> list[JudgedFailure]:
        """Failures by window; PostgreSQL reads all windows in one query, SQLite one after the other."""
        given = sorted({(one.cluster, one.name, one.since, one.until) for one in windows})
        if not given:
            return []
        fields: dict[str, Kind] = {"cluster": "text", "name": "text", "since": "timestamptz", "until": "timestamptz"}
        columns = ", ".join(f"failures.{name}" for name in _COLUMNS)
        joined = "JOIN failures ON failures.id = hit.id JOIN jobs ON jobs.id = hit.id"
        if bulk.is_postgres(self._connection):
            wanted = KeyJoin(self._connection, fields, given)
            source = f"{wanted.source} CROSS JOIN LATERAL ({inner.format_map(wanted.fields)}) AS hit"
            condition = where.format_map(wanted.fields)
            sql = f"SELECT {columns}, jobs.nodes, jobs.job_id FROM {source} {joined} WHERE {condition}"  # noqa: S608 - ours
            rows = [tuple(row) for row in self._connection.execute(_typed(sql), wanted.parameters(each=each))]
        else:
            marks = {name: f":{name}" for name in fields}
            source, condition = f"({inner.format_map(marks)}) AS hit", where.format_map(marks)
            sql = f"SELECT {columns}, jobs.nodes, jobs.job_id FROM {source} {joined} WHERE {condition}"  # noqa: S608 - ours
            statement = _typed(sql)
            rows = []
            for cluster, name, since, until in given:
                times = {"since": bulk.sqlite_time(since), "until": bulk.sqlite_time(until)}
                values = {"cluster": clean(cluster), "name": clean(name), "each": each, **times}
                used = {name: value for name, value in values.items() if f":{name}" in sql}
                rows += [tuple(row) for row in self._connection.execute(statement, used)]
        return sorted({row[0]: _near(row) for row in rows}.values(), key=_id)

    def _wanted(self, windows: Sequence[Window]) -> KeyJoin:
        return KeyJoin(
            self._connection,
            {"cluster": "text", "name": "text", "since": "timestamptz", "until": "timestamptz"},
            [(one.cluster, one.name, one.since, one.until) for one in windows],
        )


class FailureFactRepository(FailureFactReader):
    """Reads and writes failure facts."""

    def remove_weights(self) -> None:
        """Remove the weights of failures that retention removed: those before the oldest attempt."""
        oldest = self._connection.execute(select(jobs.c.id).order_by(jobs.c.id).limit(1)).scalar()
        if oldest is not None:
            self._connection.execute(delete(failure_weights).where(failure_weights.c.failure_id < oldest))

    def put_weights(self, new: Sequence[FailureWeights]) -> None:
        """Set what these failures add; one without weights adds nothing."""
        empty = [one.failure_id for one in new if not one.weights]
        for chunk in chunks(sorted(empty)):
            self._connection.execute(delete(failure_weights).where(failure_weights.c.failure_id.in_(chunk)))
        rows = [
            {
                "failure_id": one.failure_id,
                "body": pack([one.cluster, utc(one.ended_at).isoformat(), dict(one.weights)]),
            }
            for one in new
            if one.weights
        ]
        insert = upsert(self._connection, failure_weights)
        statement = insert.on_conflict_do_update(index_elements=["failure_id"], set_={"body": insert.excluded.body})
        for part in chunks(rows):
            self._connection.execute(statement, part)


_NAME = 200  # characters
_COLUMNS = (
    *("id", "cluster", "ended_at", "user_name", "side", "cause", "confidence", "abstained", "fingerprint"),
    *("suspect_node", "source"),
)


def _typed(sql: str) -> TextualSelect:
    return text(sql).columns(*(failures.c[name] for name in _COLUMNS), jobs.c.nodes, jobs.c.job_id)


def _near(row: tuple[Any, ...]) -> JudgedFailure:
    number, cluster, ended_at, user, side, cause, confidence, abstained, fingerprint, suspect, source, nodes, job = row
    return JudgedFailure(
        id=number,
        cluster=cluster,
        job_id=job,
        ended_at=ended_at,
        user=user,
        side=side,
        cause=cause,
        confidence=confidence,
        abstained=abstained,
        fingerprint=fingerprint,
        suspect_node=suspect,
        nodes=_nodes(nodes),
        source=source,
    )


def _weights_of(row: Row[Any]) -> FailureWeights:
    cluster, ended_at, weights = unpack(row.body)
    counted = {str(node): float(weight) for node, weight in dict(weights).items()}
    return FailureWeights(row.failure_id, str(cluster), utc(datetime.fromisoformat(ended_at)), counted)


def _nodes(text: str | None) -> tuple[str, ...]:
    """The node names of an attempt, as long as the tables of nodes store them."""
    return tuple(name[:_NAME] for name in names_of(text))


def _id(one: JudgedFailure) -> int:
    return one.id


def _judged(row: Row[Any], nodes: tuple[str, ...], job_id: str) -> JudgedFailure:
    return record_of(JudgedFailure, row, job_id=job_id, user=row.user_name, nodes=nodes)
