"""Retention: removes old rows in batches; the keys of events are kept for ever."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, and_, delete, exists, literal, select, tuple_, update

from service.db import log_months
from service.db.log_months import Transaction
from service.dead_letters.repository import dead_letters
from service.deliveries.tables import deliveries, outbox
from service.drift.repository import input_measures
from service.failures.repository import search
from service.failures.tables import (
    LOGS_IN_ROWS,
    failure_nodes,
    failures,
    log_bodies,
    logs,
    pending_logs,
    verdicts,
)
from service.feedback.tables import audit_samples, feedback, labels
from service.fixes.repository import applied_fixes
from service.good_runs.repository import good_runs
from service.groups.tables import group_deltas, group_hours
from service.incidents.tables import incident_jobs
from service.jobs.repository.jobs import RETIREMENT_LOCK, key_hash
from service.jobs.tables import counters, jobs, retired_events
from service.nodes.repository import suspicion
from service.nodes.tables import failure_weights
from service.periodic import in_portions
from service.resubmissions.tables import advice_history, lineage_marks, lineages, requests
from service.second_reader.repository import second_readings
from service.sql import bulk
from service.sql.types import UtcDateTime, utc
from service.statistics.repository.rollups import mark_stale

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
    nodes: int = 0


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
    removed_nodes = 0
    if logs_before is not None:
        removed_logs = _purge_logs(transaction, utc(logs_before))
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
        with transaction() as connection:  # once, since they are found by their age alone
            for table, at in ((lineages, "at"), (lineage_marks, "at"), (group_hours, "hour")):
                connection.execute(delete(table).where(table.c[at] < utc(rows_before)))
        with transaction() as connection:
            removed_nodes = suspicion.remove_unused(connection, rows_before)
    if done_before is not None:
        removed_messages = _each(transaction, _Done(utc(done_before)))
        removed_letters = _each(transaction, _Letters(utc(done_before)))
    with transaction() as connection:
        if not bulk.is_postgres(connection):
            # PostgreSQL collects statistics itself; SQLite's planner has none until PRAGMA optimize is run.
            connection.exec_driver_sql("PRAGMA analysis_limit = 1000")
            connection.exec_driver_sql("PRAGMA optimize")
    return PurgeResult(
        removed_jobs,
        removed_failures,
        removed_logs,
        removed_bodies,
        removed_letters,
        removed_messages,
        nodes=removed_nodes,
    )


def _each(transaction: Transaction, step: Callable[[Connection], int]) -> int:
    """Repeat a step, each in its own transaction, until it finds no rows; returns the number of removed rows."""
    total = 0

    def remove_some() -> bool:
        nonlocal total
        with transaction() as connection:
            removed = step(connection)
        total += removed
        return removed > 0

    in_portions(remove_some)
    return total


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


def _purge_logs(transaction: Transaction, before: datetime) -> int:
    """Remove logs and keep their events; returns their number."""
    removed = log_months.drop_before(transaction, before)
    removed += _each(transaction, _LogBodies(before))
    with transaction() as connection:
        old = select(failures.c.id).where(failures.c.ended_at < before)
        connection.execute(delete(pending_logs).where(pending_logs.c.failure_id.in_(old)))
        in_rows = connection.execute(select(counters.c.value).where(counters.c.name == LOGS_IN_ROWS)).first()
    if in_rows is None:
        return removed
    texts = _LogsInRows(before)
    _each(transaction, texts)
    if not _any_logs_in_rows(transaction, before):
        with transaction() as connection:
            connection.execute(delete(counters).where(counters.c.name == LOGS_IN_ROWS))
    return removed + texts.removed


class _LogBodies:
    """Removes the logs of attempts that ended before a time; what is left of a month, or all where there are none."""

    def __init__(self, before: datetime) -> None:
        self._before = before
        self._position: datetime | None = None

    def __call__(self, connection: Connection) -> int:
        ended_at = log_bodies.c.ended_at
        wanted = select(log_bodies.c.failure_id, ended_at).where(ended_at < self._before)
        if self._position is not None:  # entries of the rows that are deleted already need not be read again
            wanted = wanted.where(ended_at >= self._position)
        old = connection.execute(wanted.order_by(ended_at).limit(BATCH)).all()
        if not old:
            return 0
        self._position = old[-1].ended_at
        ids = [row.failure_id for row in old]
        between = ended_at.between(old[0].ended_at, self._position)
        return connection.execute(delete(log_bodies).where(log_bodies.c.failure_id.in_(ids), between)).rowcount


class _LogsInRows(_Walk):
    """Removes logs that were stored in the rows of their events, before there was a table of logs."""

    def _remove(self, connection: Connection, ids: list[int]) -> int:
        return connection.execute(
            update(logs).where(and_(logs.c.failure_id.in_(ids), logs.c.streams.is_not(None))).values(streams=None)
        ).rowcount


def _any_logs_in_rows(transaction: Transaction, since: datetime) -> bool:
    """Whether a failure that ended since a time still has its logs in the rows of their events."""
    last: tuple[datetime, int] = (since, -1)
    while True:
        here = tuple_(failures.c.ended_at, failures.c.id)
        wanted = select(failures.c.ended_at, failures.c.id).where(
            failures.c.ended_at >= since, here > tuple_(literal(last[0], UtcDateTime), literal(last[1]))
        )
        with transaction() as connection:
            some = connection.execute(wanted.order_by(failures.c.ended_at, failures.c.id).limit(BATCH)).all()
            ids = [row.id for row in some]
            kept = select(logs.c.failure_id).where(logs.c.failure_id.in_(ids), logs.c.streams.is_not(None))
            if connection.execute(kept.limit(1)).first() is not None:
                return True
        if not some:
            return False
        last = (some[-1].ended_at, some[-1].id)


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
            select(jobs.c.id, jobs.c.event_id, jobs.c.digest, jobs.c.ended_at)
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
        gone = delete(failures).where(failures.c.id.in_(ids)).returning(failures.c.ended_at)
        ended = connection.execute(gone).scalars().all()
        self.failures += len(ended)
        mark_stale(connection, [*(row.ended_at for row in old), *ended])
        for table in (failure_nodes, verdicts, logs, log_bodies, pending_logs, input_measures, failure_weights):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
        connection.execute(delete(pending_logs).where(pending_logs.c.attempt_id.in_(ids)))
        # Feedback is removed with its failure; the counts of groups include removed failures.
        for table in (feedback, labels, applied_fixes, audit_samples, group_deltas):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
        # Advice and requests are removed too; outcomes of resubmissions are only counted over the last months.
        for table in (advice_history, requests, incident_jobs):
            connection.execute(delete(table).where(table.c.failure_id.in_(ids)))
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
