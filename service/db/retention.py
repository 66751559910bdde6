"""Retention: removes old rows in batches; the keys of events are kept for ever."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, and_, delete, exists, literal, select, tuple_, update

from service.dead_letters.tables import dead_letters
from service.deliveries.tables import deliveries, outbox
from service.drift.tables import input_measures
from service.failures.repository import search
from service.failures.tables import failure_nodes, failures, logs, pending_logs, verdicts
from service.feedback.tables import audits, feedback, labels, mended
from service.good_runs.tables import good_runs
from service.groups.tables import group_deltas
from service.incidents.tables import incident_jobs
from service.jobs.repository.jobs import RETIREMENT_LOCK, key_hash
from service.jobs.tables import jobs, retired_events
from service.requests.tables import advices, lineage_marks, lineages, requests
from service.second_reader.tables import second_readings
from service.sql import bulk
from service.sql.types import UtcDateTime, utc

BATCH = 500


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """How many rows, and objects of the log storage, retention removed."""

    jobs: int = 0
    failures: int = 0
    logs: int = 0
    verdict_bodies: int = 0
    dead_letters: int = 0
    outbox: int = 0
    log_objects: int = 0


Transaction = Callable[[], AbstractContextManager[Connection]]


def purge(
    transaction: Transaction,
    *,
    rows_before: datetime | None,
    logs_before: datetime | None,
    verdicts_before: datetime | None,
    done_before: datetime | None,
) -> PurgeResult:
    """See `Store.purge`."""
    removed_jobs = removed_failures = removed_logs = removed_bodies = removed_letters = removed_messages = 0
    if logs_before is not None:
        texts = _Logs(utc(logs_before))
        _each(transaction, texts)
        removed_logs = texts.removed
        with transaction() as connection:  # a row for each job name, and small: no batches
            connection.execute(delete(good_runs).where(good_runs.c.ended_at < utc(logs_before)))
    if verdicts_before is not None:
        bodies = _Bodies(utc(verdicts_before))
        _each(transaction, bodies)
        removed_bodies = bodies.removed
        with transaction() as connection:  # a row for each kind that was asked about: no batches
            connection.execute(delete(second_readings).where(second_readings.c.asked_at < utc(verdicts_before)))
    if rows_before is not None:
        rows = _Rows(utc(rows_before))
        removed_jobs, removed_failures = _each(transaction, rows), rows.failures
    if done_before is not None:
        removed_messages = _each(transaction, _Done(utc(done_before)))
        removed_letters = _each(transaction, _Letters(utc(done_before)))
    with transaction() as connection:
        if not bulk.is_postgres(connection):
            # PostgreSQL collects statistics itself; SQLite's planner has none until PRAGMA optimize is run.
            connection.exec_driver_sql("PRAGMA analysis_limit = 1000")
            connection.exec_driver_sql("PRAGMA optimize")
    return PurgeResult(removed_jobs, removed_failures, removed_logs, removed_bodies, removed_letters, removed_messages)


def _each(transaction: Transaction, step: Callable[[Connection], int]) -> int:
    """Repeat a step, each in its own transaction, until it finds no rows; returns the number of removed rows."""
    total = 0
    while True:
        with transaction() as connection:
            removed = step(connection)
        if removed == 0:
            return total
        total += removed


def _ids(connection: Connection, wanted: Select[int]) -> list[int]:
    return list(connection.execute(wanted.limit(BATCH)).scalars())


class _Walk:
    """Iterates once over the failures that ended before a time, oldest first."""

    def __init__(self, before: datetime) -> None:
        self._before = before
        self._position: tuple[datetime, int] | None = None
        self.removed = 0

    def __call__(self, connection: Connection) -> int:
        wanted = select(failures.c.ended_at, failures.c.id).where(failures.c.ended_at < self._before)
        if self._position is not None:
            at, last = self._position
            here, there = tuple_(failures.c.ended_at, failures.c.id), tuple_(literal(at, UtcDateTime), literal(last))
            wanted = wanted.where(here > there)
        old = connection.execute(wanted.order_by(failures.c.ended_at, failures.c.id).limit(BATCH)).all()
        if old:
            self.removed += self._remove(connection, [row.id for row in old])
            self._position = (old[-1].ended_at, old[-1].id)
        return len(old)

    def _remove(self, connection: Connection, ids: list[int]) -> int:
        raise NotImplementedError


class _Logs(_Walk):
    """Removes log texts; the event is kept."""

    def _remove(self, connection: Connection, ids: list[int]) -> int:
        connection.execute(delete(pending_logs).where(pending_logs.c.failure_id.in_(ids)))
        return connection.execute(
            update(logs).where(and_(logs.c.failure_id.in_(ids), logs.c.streams.is_not(None))).values(streams=None)
        ).rowcount


class _Bodies(_Walk):
    """Removes bodies of verdicts; the columns of lists and filters are kept."""

    def _remove(self, connection: Connection, ids: list[int]) -> int:
        return connection.execute(
            update(verdicts).where(and_(verdicts.c.failure_id.in_(ids), verdicts.c.body.is_not(None))).values(body=None)
        ).rowcount


class _Rows:
    """Removes attempts and their failures. End and receipt must both be old: a wrong clock must not lose an event."""

    def __init__(self, before: datetime) -> None:
        self._before = before
        self.failures = 0

    def __call__(self, connection: Connection) -> int:
        bulk.lock(connection, [RETIREMENT_LOCK])
        old = connection.execute(
            select(jobs.c.id, jobs.c.event_id, jobs.c.digest)
            .where(jobs.c.ended_at < self._before, jobs.c.received_at < self._before)
            .order_by(jobs.c.ended_at)
            .limit(BATCH)
        ).all()
        if not old:
            return 0
        ids = [row.id for row in old]
        bulk.append(
            connection,
            retired_events,
            ("key_hash", "digest"),
            [(key_hash(row.event_id), bytes(row.digest)) for row in old],
        )
        # The failure first: this waits for transactions that add to it, and removes their rows too.
        self.failures += connection.execute(delete(failures).where(failures.c.id.in_(ids))).rowcount
        for table in (failure_nodes, verdicts, logs, pending_logs, input_measures):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
        connection.execute(delete(pending_logs).where(pending_logs.c.attempt_id.in_(ids)))
        # Feedback is removed with its failure; the counts of groups include removed failures.
        for table in (feedback, labels, mended, audits, group_deltas):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
        # Advice and requests are removed too; outcomes of resubmissions are only counted over the last months.
        for table in (advices, requests, incident_jobs):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
        for table in (lineages, lineage_marks):
            connection.execute(delete(table).where(table.c.at < self._before))
        search.remove(connection, ids)
        connection.execute(delete(jobs).where(jobs.c.id.in_(ids)))
        return len(ids)


class _Done:
    """Removes delivered messages; one that still waits for an endpoint is kept."""

    def __init__(self, before: datetime) -> None:
        self._before = before

    def __call__(self, connection: Connection) -> int:
        waiting = exists().where(deliveries.c.message_id == outbox.c.id, deliveries.c.state == "waiting")
        ids = _ids(connection, select(outbox.c.id).where(outbox.c.done_at < self._before, ~waiting))
        if ids:
            connection.execute(delete(outbox).where(outbox.c.id.in_(ids)))
        return len(ids)


class _Letters:
    """Removes dead letters."""

    def __init__(self, before: datetime) -> None:
        self._before = before

    def __call__(self, connection: Connection) -> int:
        ids = _ids(connection, select(dead_letters.c.id).where(dead_letters.c.at < self._before))
        if ids:
            connection.execute(delete(dead_letters).where(dead_letters.c.id.in_(ids)))
        return len(ids)
