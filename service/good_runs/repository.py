"""The last good run of each job, one row for cluster, user and name: table, records and queries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Column, LargeBinary, String, Table

from classifiers.contracts import GoodRun
from classifiers.last_good_run import from_bytes, to_bytes
from service.sql.bulk import upsert
from service.sql.portable import KeyJoin
from service.sql.reader import Reader
from service.sql.types import UtcDateTime, clean, metadata, short, utc

# One row for each job name of a user. `lines`: at most 4,096 hashes of 8 bytes (classifiers.last_good_run).
good_runs = Table(
    "good_runs",
    metadata,
    Column("cluster", String(200), primary_key=True),
    Column("user_name", String(200), primary_key=True),
    Column("name", String(300), primary_key=True),
    Column("job_id", String(200), nullable=False),
    Column("ended_at", UtcDateTime, nullable=False, index=True),
    Column("lines", LargeBinary, nullable=False),
)

JobName = tuple[str, str, str]
"""Cluster, user and name: jobs that agree in all three are runs of the same job."""
_MATCH = "good_runs.cluster = {cluster} AND good_runs.user_name = {user_name} AND good_runs.name = {name}"


@dataclass(frozen=True, slots=True)
class StoredGoodRun:
    """The last successful run of a job, and when it ended (aware, in UTC)."""

    key: JobName
    run: GoodRun
    ended_at: datetime


def _stored(key: JobName) -> JobName:
    cluster, user, name = key
    return clean(cluster[:200]), clean(user[:200]), clean(name[:300])


class GoodRunReader(Reader):
    """Reads good runs."""

    def of(self, keys: Collection[JobName]) -> Mapping[JobName, StoredGoodRun]:
        """The last good run of each of these jobs; jobs without one are left out."""
        wanted = {_stored(key): key for key in keys}
        join = KeyJoin(self._connection, {"cluster": "text", "user_name": "text", "name": "text"}, wanted)
        found = {}
        for row in join.select(good_runs, _MATCH):
            key = wanted[row.cluster, row.user_name, row.name]
            found[key] = StoredGoodRun(key, from_bytes(bytes(row.lines), row.job_id), row.ended_at)
        return found


class GoodRunRepository(GoodRunReader):
    """Reads and writes good runs."""

    def put(self, runs: Sequence[StoredGoodRun]) -> None:
        """Store good runs; a run that ended before the stored one of its job changes nothing."""
        for one in sorted(runs, key=lambda run: (_stored(run.key), run.ended_at)):  # the same order in all transactions
            cluster, user, name = _stored(one.key)
            insert = upsert(self._connection, good_runs).values(
                cluster=cluster,
                user_name=user,
                name=name,
                job_id=short(one.run.job_id or ""),
                ended_at=utc(one.ended_at),
                lines=to_bytes(one.run),
            )
            changed = {column: insert.excluded[column] for column in ("job_id", "ended_at", "lines")}
            self._connection.execute(
                insert.on_conflict_do_update(
                    index_elements=["cluster", "user_name", "name"],
                    set_=changed,
                    where=good_runs.c.ended_at <= insert.excluded.ended_at,
                )
            )
