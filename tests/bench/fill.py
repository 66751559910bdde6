"""Fill a database for the benchmark: COPY on PostgreSQL, prepared statements on SQLite, indexes afterwards.

The results of the background tasks are included: hours by the service's own fold, groups with the same counts as its
fold (in SQL, since it folds a few rows per transaction), group states by the service's own rules.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
from sqlalchemy import Connection

from service.clock import SystemClock
from service.db import log_months
from service.db.all_tables import metadata
from service.db.log_months import Month
from service.db.session import Store
from service.groups.count_updater import GroupCountUpdater
from service.maintenance import Sealing
from service.reports.publish import ReportService
from service.sql import bulk
from service.sql.packing import pack
from service.statistics.repository import rollups
from service.statistics.tables import stale_hours
from tests.bench import world
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock

KEPT_LOGS = timedelta(days=90)  # the default of FAULTLINE_RETENTION_LOGS_DAYS
ASKED: dict[str, object] = {"exclude_nodes": [], "resume_from": None, "changes": {}, "reasons": ["made up"]}
UNFOLDED = 500  # number of the newest failures that the background tasks have not counted yet


@dataclass(frozen=True, slots=True)
class Filled:
    """The number of loaded rows and the load time."""

    failures: int
    jobs: int
    seconds: float


def fill(url: str, count: int, days: float, *, newest: datetime | None = None) -> Filled:
    """Migrate a database and load `count` failures of the last `days` with all derived rows."""
    began = time.monotonic()
    at = newest or datetime.now(UTC)
    with closing(Store(url)) as store:
        store.upgrade()
        jobs = 0
        with _plain(store) as connection:
            _create_months(connection, at, KEPT_LOGS)
        with _plain(store) as connection, _without_indexes(connection):
            for rows in world.rows(count, at, days, kept_logs=KEPT_LOGS):
                _put(connection, rows)
                jobs += len(rows.jobs)
            _after(connection, jobs)
        with _plain(store) as connection:
            _derive(connection, at)
            _tidy(connection)
        fold(store, at)
        with _plain(store) as connection:
            _tidy(connection)
        ReportService(store, ZoneInfo("UTC"), SystemClock()).run_if_due()  # as a running service has done
    return Filled(count, jobs, time.monotonic() - began)


def fold(store: Store, now: datetime) -> None:
    """Do what a running service has done in the background: completed hours, seals, and groups."""
    while True:
        with store.unit_of_work() as work:
            if not work.rollups.recount(now, limit=200):
                break
    Sealing(store, FrozenClock(now)).seal_due()
    folding = GroupCountUpdater(store, SystemClock())
    while folding():
        pass


@contextmanager
def _plain(store: Store) -> Iterator[Connection]:
    """Yield a connection without a statement timeout that commits only explicitly."""
    with engine_of(store).connect() as connection:
        if bulk.is_postgres(connection):
            connection.exec_driver_sql("SET statement_timeout = 0")
            connection.exec_driver_sql("SET session_replication_role = replica")  # no foreign-key look-up for each row
            connection.exec_driver_sql("SET maintenance_work_mem = '1GB'")
            connection.exec_driver_sql("SET work_mem = '512MB'")
        else:
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.commit()
        yield connection
        connection.commit()
        if bulk.is_postgres(connection):
            connection.exec_driver_sql("RESET ALL")
            connection.commit()


@contextmanager
def _without_indexes(connection: Connection) -> Iterator[None]:
    """Insert rows first, then create all indexes: sorting is cheaper than inserting in place."""
    postgres = bulk.is_postgres(connection)
    found = (
        # An index of a partitioned table stands for those of its partitions; PostgreSQL shows it as one without them.
        "SELECT indexname, replace(indexdef, ' ON ONLY ', ' ON ') FROM pg_indexes WHERE schemaname = 'public' "
        "AND indexname NOT IN (SELECT conname FROM pg_constraint) "
        "AND NOT (SELECT relispartition FROM pg_class WHERE oid = to_regclass(indexname))"
        if postgres
        else "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    )
    indexes = [(row[0], row[1]) for row in connection.exec_driver_sql(found)]
    for name, _ in indexes:
        connection.exec_driver_sql(f'DROP INDEX "{name}"')
    connection.commit()
    yield
    for _, statement in indexes:
        connection.exec_driver_sql(statement)
    connection.commit()


def _create_months(connection: Connection, newest: datetime, kept: timedelta) -> None:
    """Create the partitions of the months that have logs (PostgreSQL)."""
    if bulk.is_postgres(connection):
        have, month = log_months.months(connection), Month.of(newest - kept)
        while month <= Month.of(newest):
            if month not in have:
                log_months.create_month(connection, month)
            month = month.plus(1)
        connection.commit()


def _put(connection: Connection, rows: world.Rows) -> None:
    for name, columns in world.columns().items():
        bulk.append(connection, metadata.tables[name], columns, getattr(rows, name))
    if bulk.is_postgres(connection):
        driver: Any = connection.connection.dbapi_connection
        with driver.cursor() as cursor, cursor.copy("COPY evidence_words FROM STDIN") as copy:
            copy.write("".join(f"{number}\t{words}\n" for number, words in rows.words))
    elif rows.words:
        connection.exec_driver_sql("INSERT INTO evidence_words (rowid, words) VALUES (?, ?)", rows.words)
    rollups.mark_stale(connection, [row[14] for row in rows.jobs])
    connection.commit()


def _after(connection: Connection, last: int) -> None:
    """Set sequences to continue after the inserted numbers; record each hour once."""
    if bulk.is_postgres(connection):
        connection.exec_driver_sql(f"SELECT setval('job_ids', {last})")
    else:
        connection.exec_driver_sql("INSERT INTO counters (name, value) VALUES ('job_ids', ?)", (last,))
    noted = {row[0] for row in connection.execute(stale_hours.select().with_only_columns(stale_hours.c.hour))}
    connection.execute(stale_hours.delete())
    rollups.mark_stale(connection, noted)
    connection.commit()


def _tidy(connection: Connection) -> None:
    """Update statistics and, on PostgreSQL, the visibility map, as its own maintenance would do eventually."""
    driver: Any = connection.connection.dbapi_connection
    if isinstance(driver, psycopg.Connection):
        connection.rollback()
        driver.set_autocommit(True)
        driver.execute("VACUUM ANALYZE")
        driver.set_autocommit(False)
    else:
        connection.exec_driver_sql("PRAGMA analysis_limit = 1000")
        connection.exec_driver_sql("ANALYZE")
        connection.commit()


def _derive(connection: Connection, now: datetime) -> None:
    """Insert the rows derived from failures: groups, nodes, requests, incidents, feedback."""
    postgres = bulk.is_postgres(connection)

    def at(back: timedelta) -> str:
        moment = now - back
        return f"TIMESTAMPTZ '{moment.isoformat()}'" if postgres else f"'{bulk.sqlite_time(moment)}'"

    hour = "date_trunc('hour', ended_at, 'UTC')" if postgres else "substr(ended_at, 1, 13) || ':00:00.000000'"
    words = {
        "now": at(timedelta()),
        "hour": hour,
        "month": at(timedelta(days=30)),
        "later": at(timedelta(days=-1)),
        "newest": f"(SELECT max(id) - {UNFOLDED} FROM failures)",
        "asked": f"decode('{pack(ASKED).hex()}', 'hex')" if postgres else f"x'{pack(ASKED).hex()}'",
        "blob": f"decode('{pack({}).hex()}', 'hex')" if postgres else f"x'{pack({}).hex()}'",
        "letter": f"decode('{pack('made up').hex()}', 'hex')" if postgres else f"x'{pack('made up').hex()}'",
        "list": f"decode('{pack([]).hex()}', 'hex')" if postgres else f"x'{pack([]).hex()}'",
        "yes": "true" if postgres else "1",
        "no": "false" if postgres else "0",
    }
    for statement in SQL.format(**words).split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement.replace("%", "%%") if postgres else statement)
            connection.commit()


# The shares of feedback and automation are invented too: a request for every fifth failure, feedback for every
# hundredth, an incident for every ten thousandth, a few dead letters and messages.
SQL = """
INSERT INTO groups (made_at, fingerprint, state, state_since, title, side, cause, abstained, first_id, last_id,
                    first_at, last_at, failures, users, gpu_hours_lost, review_at)
SELECT {now}, one.fingerprint, CASE WHEN one.first % 10 = 0 THEN 'resolved' ELSE 'ongoing' END, one.first_at,
       last.headline, last.side, last.cause, last.abstained, one.first, one.last, one.first_at, one.last_at,
       one.many, one.users, one.lost, {now}
FROM (SELECT fingerprint, min(id) AS first, max(id) AS last, min(ended_at) AS first_at, max(ended_at) AS last_at,
             count(*) AS many, count(DISTINCT user_name) AS users, sum(gpu_hours_lost) AS lost
      FROM failures WHERE id <= {newest} GROUP BY fingerprint) AS one
JOIN failures AS last ON last.id = one.last;
UPDATE groups SET resolved_at = {later} WHERE state = 'resolved';
INSERT INTO group_fingerprints (fingerprint, group_id, own_group, failures, gpu_hours_lost, first_at, last_at)
SELECT fingerprint, id, id, failures, gpu_hours_lost, first_at, last_at FROM groups;
INSERT INTO group_hours (fingerprint, hour, failures, gpu_hours_lost)
SELECT fingerprint, {hour}, count(*), sum(gpu_hours_lost) FROM failures WHERE id <= {newest} GROUP BY 1, 2;
INSERT INTO group_facets (fingerprint, kind, name, failures)
SELECT fingerprint, 'cluster', cluster, count(*) FROM failures WHERE id <= {newest} GROUP BY 1, 3;
INSERT INTO group_facets (fingerprint, kind, name, failures)
SELECT fingerprint, 'queue', queue, count(*) FROM failures WHERE id <= {newest} GROUP BY 1, 3;
INSERT INTO group_facets (fingerprint, kind, name, failures)
SELECT fingerprint, 'team', team, count(*) FROM failures WHERE id <= {newest} GROUP BY 1, 3;
INSERT INTO group_facets (fingerprint, kind, name, failures)
SELECT fingerprint, 'user', user_name, count(*) FROM failures WHERE id <= {newest} GROUP BY 1, 3;
INSERT INTO group_facets (fingerprint, kind, name, failures)
SELECT fingerprint, 'node', suspect_node, count(*) FROM failures
WHERE id <= {newest} AND suspect_node IS NOT NULL GROUP BY 1, 3;
INSERT INTO group_deltas (failure_id, fingerprint, sign) SELECT id, fingerprint, 1 FROM failures WHERE id > {newest};
INSERT INTO nodes (cluster, node, exposure_h, blame, failures, jobs, rate_ratio, low, high, last_failure_at,
                   computed_at)
SELECT cluster, node, 1000, count(*) / 10.0, count(*), 3 * count(*), 0.5 + count(*) % 40 / 10.0,
       0.2 + count(*) % 40 / 20.0, 1.5 + count(*) % 40 / 5.0, max(ended_at), {now}
FROM (SELECT failures.cluster, failure_nodes.node, failure_nodes.ended_at FROM failure_nodes
      JOIN failures ON failures.id = failure_nodes.failure_id) AS hit GROUP BY cluster, node;
INSERT INTO node_events (key, cluster, node, at, received_at, kind, severity, resolved, text)
SELECT digest, cluster, substr(nodes, 3, 7), ended_at, received_at, 'gpu_lost', 'critical', {no}, 'Xid 79'
FROM jobs WHERE failure_id IS NOT NULL AND id % 50 = 0;
INSERT INTO requests (public_id, failure_id, attempt_id, verdict_version, cluster, job_id, attempt, user_name, team,
                      queue, gpus, gpu_hours, lineage, side, cause, fingerprint, resource, state, origin, kind, plan,
                      policy, ask_scheduler, body, fold_keys, created_at, not_before, expires_at, leases, tries,
                      leased_at, ended_at, result, retracted, outcome, outcome_at, outcome_attempt_id)
SELECT 'r-' || id, id, id, 1, cluster, 'job-' || id, 0, user_name, team, queue, 8, gpu_hours_lost, 'l-' || id, side,
       cause, fingerprint, 'none',
       CASE WHEN id > (SELECT max(id) - 500 FROM failures) THEN 'waiting' WHEN id % 3 = 0 THEN 'shadow' ELSE 'done' END,
       'policy', 'submit', 'again', 'bench 1', {no}, {asked}, '[]', ended_at, ended_at, ended_at, 1, 1,
       CASE WHEN id % 3 = 0 THEN NULL ELSE ended_at END, CASE WHEN id % 3 = 0 THEN NULL ELSE ended_at END,
       CASE WHEN id % 3 = 0 THEN NULL ELSE 'done' END, {no},
       CASE WHEN id % 3 = 0 THEN NULL WHEN id % 7 < 4 THEN 'succeeded' ELSE 'failed_same' END,
       CASE WHEN id % 3 = 0 THEN NULL ELSE ended_at END, CASE WHEN id % 3 = 0 THEN NULL ELSE id END
FROM failures WHERE resubmit AND id % 3 < 2;
INSERT INTO incidents (fold_key, kind, value, cluster, cause, title, state, by_hand, opened_at, last_at, jobs, users,
                       probes, closed_at, closed_by)
SELECT 'node:' || id, 'node', 'gpu0001', cluster, cause, 'A node is lost', CASE WHEN id > {newest} THEN 'holding'
       ELSE 'closed' END, {no}, ended_at, ended_at, 40, 10, 0, CASE WHEN id > {newest} THEN NULL ELSE ended_at END,
       CASE WHEN id > {newest} THEN NULL ELSE 'service' END
FROM failures WHERE id % 10000 = 0 OR (id > {newest} AND id % 250 = 0);
INSERT INTO incident_jobs (incident_id, failure_id, at, user_name)
SELECT incidents.id, failures.id, failures.ended_at, failures.user_name FROM incidents JOIN failures
ON failures.id BETWEEN 20 * incidents.id + 1 AND 20 * incidents.id + 40;
INSERT INTO incident_notes (incident_id, at, by, what, text)
SELECT id, opened_at, 'service', 'opened', title FROM incidents;
INSERT INTO feedback (failure_id, at, who, kind, version, said_side, said_cause, model_shown)
SELECT id, ended_at, 'ana', CASE WHEN id % 500 = 0 THEN 'contest' ELSE 'confirm' END, 1, side, cause, {yes}
FROM failures WHERE id % 100 = 0;
INSERT INTO labels (failure_id, at, who, side, cause, people, disputed, contested, golden, waiting)
SELECT failure_id, at, who, said_side, said_cause, 1, {no}, kind = 'contest', {no}, kind = 'contest' FROM feedback;
INSERT INTO audits (week, failure_id, feedback_id) SELECT '2026-W40', failure_id, id FROM feedback LIMIT 50;
INSERT INTO dead_letters (at, place, sha256, reason, errors, text, resent_at)
SELECT ended_at, 'bench[0]@' || id, fingerprint, 'not JSON', {list}, {letter},
       CASE WHEN id % 3 = 0 THEN NULL ELSE ended_at END
FROM failures WHERE id % 500 = 0 AND ended_at > {month};
INSERT INTO outbox (type, key, payload, created_at, available_at, done_at)
SELECT 'failure.classified', 'failure/' || id, {blob}, ended_at, ended_at,
       CASE WHEN id > {newest} THEN NULL ELSE ended_at END
FROM failures WHERE ended_at > {month};
INSERT INTO deliveries (message_id, endpoint, state, available_at, attempts, detail, done_at)
SELECT id, 'chat', CASE WHEN id % 1000 = 0 THEN 'given_up' ELSE 'done' END, available_at, 1, 'made up', done_at
FROM outbox WHERE done_at IS NOT NULL;
"""
