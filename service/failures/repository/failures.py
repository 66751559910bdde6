"""Diagnosed failures: fields of the current verdict for lists, all verdict versions, and the logs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from service.clock import Clock
from service.contracts.page import Page
from service.errors import NotFound
from service.failures.records import (
    AttemptLogs,
    FailureDetail,
    FailureFilter,
    FailureRow,
    FailureSort,
    NewFailure,
    Source,
    VerdictVersion,
)
from service.failures.repository import facets, search, solved
from service.failures.repository.list_parts import page
from service.failures.repository.listing import JOB_FACTS, row_of
from service.failures.tables import failure_nodes, failures, logs, verdicts
from service.groups.tables import group_deltas
from service.jobs.records import CountedAs
from service.jobs.repository.jobs import JobReader
from service.jobs.repository.row_mapping import nodes_of
from service.jobs.same_job import runs_of_job
from service.jobs.tables import jobs
from service.log_storage.log_bodies import DatabaseLogs, LogBodies
from service.log_storage.records import LogsToStore, StoredElsewhere
from service.nodes.repository import work_queue
from service.sql import bulk
from service.sql.packing import pack, pack_streams, unpack
from service.sql.types import clean, short, utc
from service.sql.upsert import upsert
from service.statistics.repository import rollups

HEADLINE = 300  # characters
_HIGHEST_ID = 2**63 - 1
_JOB_COLUMNS = ("id", "cluster", "status", "user_name", "team", "queue", "ended_at", "gpu_hours_lost", "counted")
_VERDICT_COLUMNS = (
    *("version", "source", "side", "cause", "category", "symptom", "platform_symptom", "confidence", "abstained"),
    *("retry_outlook", "fingerprint", "decision", "resubmit", "headline", "suspect_node", "suspect_rank"),
)


class FailureReader:
    """Reads failures."""

    def __init__(self, connection: Connection, clock: Clock, log_bodies: LogBodies | None = None) -> None:
        self._connection = connection
        self._clock = clock
        self._log_bodies = log_bodies or DatabaseLogs()

    def get(self, failure_id: int) -> FailureDetail:
        """Everything that is stored about one failure.

        Raises:
            NotFound: no such failure.
        """
        row = self._row(failure_id)
        versions = tuple(
            VerdictVersion(
                version=found.version,
                at=found.at,
                source=found.source,
                model=found.model,
                rules=found.rules,
                policy=found.policy,
                body=None if found.body is None else unpack(found.body),
            )
            for found in self._connection.execute(
                select(verdicts).where(verdicts.c.failure_id == failure_id).order_by(verdicts.c.version.desc())
            )
        )
        attempt_logs = tuple(
            AttemptLogs(found.attempt_id, partial(self._log_bodies.read, found.streams), unpack(found.event))
            for found in self._connection.execute(
                select(logs).where(logs.c.failure_id == failure_id).order_by(logs.c.attempt_id)
            )
        )
        current = next((found.body for found in versions if found.version == row.version), None)
        attempts = JobReader(self._connection).attempts(row.cluster, row.job_id)
        own = next((attempt for attempt in attempts if attempt.id == row.id), None)
        return FailureDetail(
            row, current, versions, attempt_logs, attempts if own is None else runs_of_job(attempts, own)
        )

    def rows(self, failure_ids: Sequence[int]) -> dict[int, FailureRow]:
        """The list rows of the failures that are stored, by id."""
        found = self._connection.execute(
            select(failures, *JOB_FACTS).join(jobs, jobs.c.id == failures.c.id).where(failures.c.id.in_(failure_ids))
        )
        return {row.id: row_of(row) for row in found}

    def page(
        self,
        filters: FailureFilter | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        sort: FailureSort = "-ended_at",
    ) -> Page[FailureRow]:
        """One page of failures (`limit` 1-500).

        Raises:
            InvalidInput: a limit out of range, an unknown sort, a cursor that is not of this list and sort.
        """
        return page(
            self._connection,
            filters or FailureFilter(),
            now=self._clock.now(),
            limit=limit,
            cursor=cursor,
            sort=sort,
        )

    def solved(self, row: FailureRow) -> solved.Solved | None:
        """The nearest failure to this one whose job succeeded afterwards."""
        return solved.nearest(self._connection, row)

    def newest(self) -> int:
        """The highest failure id, 0 if there is none."""
        return int(self._connection.execute(select(func.coalesce(func.max(failures.c.id), 0))).scalar_one())

    def facets(self, filters: FailureFilter) -> facets.FacetCounts:
        """The most common values of each filter among the newest matching failures."""
        return facets.count(self._connection, filters)

    def _row(self, failure_id: int) -> FailureRow:
        found = None
        if 0 < failure_id <= _HIGHEST_ID:
            found = self._connection.execute(
                select(failures, *JOB_FACTS).join(jobs, jobs.c.id == failures.c.id).where(failures.c.id == failure_id)
            ).first()
        if found is None:
            raise NotFound(f"no failure {failure_id}")
        return row_of(found)


class FailureRepository(FailureReader):
    """Reads and writes failures."""

    def add(self, new: Sequence[NewFailure]) -> None:
        """Store failures whose outcome has `opens` set, with verdict version 1, logs and event.

        Raises:
            ValueError: an outcome that does not open a failure.
        """
        now = utc(self._clock.now())
        rows: list[bulk.Row] = []
        nodes: list[bulk.Row] = []
        for failure in new:
            job, failure_id, verdict = failure.job, failure.outcome.id, failure.verdict
            if not failure.outcome.opens or failure_id is None:
                raise ValueError(f"{job.event_id}: this attempt does not open a failure")
            counts = failure.outcome.counts or CountedAs(True, job.status, job.ended_at, job.gpu_hours_lost)  # noqa: FBT003 - its first field
            ended_at = utc(counts.ended_at)
            rows.append(
                (
                    failure_id,
                    short(job.cluster),
                    counts.status,
                    short(job.user),
                    short(job.team),
                    short(job.queue),
                    ended_at,
                    counts.gpu_hours_lost,
                    counts.counted,
                    *_fields(verdict, 1, failure.source),
                )
            )
            nodes.extend((failure_id, node, ended_at) for node in _distinct(job.nodes))
        connection = self._connection
        bulk.append(connection, failures, (*_JOB_COLUMNS, *_VERDICT_COLUMNS), rows)
        bulk.append(connection, failure_nodes, ("failure_id", "node", "ended_at"), nodes)
        # Compressed while they are written, so that client and server work in parallel.
        bodies = (_version(one.outcome.id, 1, now, one.source, one.verdict) for one in new)
        log_rows = ((one.outcome.id, one.outcome.id, pack(one.event), _column(one.streams)) for one in new)
        bulk.append(connection, verdicts, _VERSION_COLUMNS, bodies)
        bulk.append(connection, logs, ("failure_id", "attempt_id", "event", "streams"), log_rows)
        search.add(connection, [(one.outcome.id or 0, search.searchable_text(one.verdict)) for one in new])
        counted = [(one.outcome.id, short(one.verdict["fingerprint"]), 1) for one in new]
        bulk.append(connection, group_deltas, _DELTA_COLUMNS, counted)

    def revise(
        self,
        failure_id: int,
        verdict: Mapping[str, Any],
        *,
        source: Source = "machine",
        attempt_id: int | None = None,
        streams: LogsToStore | None = None,
        event: Mapping[str, Any] | None = None,
        over_person: bool = False,
    ) -> int | None:
        """Store a new version of the verdict and make it current; a machine never overrules a person.

        `over_person`: the person's verdict was withdrawn, so that the machine's replaces it.

        With `attempt_id`, `streams` and `event` (if given) are stored as that attempt's logs.

        Returns:
            The number of the new version, None if the current verdict is a person's and `source` is "machine" (only
            the logs are stored then).

        Raises:
            NotFound: no such failure.
        """
        current = self._lock(failure_id)
        if attempt_id is not None:
            self._store_logs(failure_id, current.ended_at, attempt_id, streams, event)
        if current.source == "person" and source == "machine" and not over_person:
            return None
        version: int = current.version + 1
        self._connection.execute(
            update(failures)
            .where(failures.c.id == failure_id)
            .values(dict(zip(_VERDICT_COLUMNS, _fields(verdict, version, source), strict=True)))
        )
        now = utc(self._clock.now())
        bulk.append(self._connection, verdicts, _VERSION_COLUMNS, [_version(failure_id, version, now, source, verdict)])
        rollups.mark_stale(self._connection, [current.ended_at])
        work_queue.note(self._connection, "failures", [failure_id])
        search.replace(self._connection, failure_id, search.searchable_text(verdict))
        print_now = short(verdict["fingerprint"])
        if print_now != current.fingerprint:
            moved = [(failure_id, current.fingerprint, -1), (failure_id, print_now, 1)]
            bulk.append(self._connection, group_deltas, _DELTA_COLUMNS, moved)
        return version

    def attach(self, failure_id: int, attempt_id: int, streams: LogsToStore, event: Mapping[str, Any]) -> None:
        """Store an attempt's logs with a failure that another attempt opened, without a new verdict.

        Raises:
            NotFound: no such failure.
        """
        self._store_logs(failure_id, self._lock(failure_id).ended_at, attempt_id, streams, event)

    def _lock(self, failure_id: int) -> Row[int, str, datetime, str]:
        found = None
        if 0 < failure_id <= _HIGHEST_ID:
            found = self._connection.execute(
                select(failures.c.version, failures.c.source, failures.c.ended_at, failures.c.fingerprint)
                .where(failures.c.id == failure_id)
                .with_for_update()
            ).first()
        if found is None:
            raise NotFound(f"no failure {failure_id}")
        return found

    def _store_logs(
        self,
        failure_id: int,
        ended_at: datetime,
        attempt_id: int,
        streams: LogsToStore | None,
        event: Mapping[str, Any] | None,
    ) -> None:
        values: dict[str, Any] = {}
        if streams is not None:
            values["streams"] = _column(streams)
        if event is not None:
            values["event"] = pack(event)
        insert = upsert(self._connection, logs).values(
            {"attempt_id": attempt_id, "failure_id": failure_id, "event": pack({}), **values}
        )
        if values:
            insert = insert.on_conflict_do_update(index_elements=["failure_id", "attempt_id"], set_=values)
        else:
            insert = insert.on_conflict_do_nothing()
        self._connection.execute(insert)
        text = self._connection.execute(select(jobs.c.nodes).where(jobs.c.id == attempt_id)).scalar_one_or_none()
        for node in _distinct(nodes_of(text)):
            self._connection.execute(
                upsert(self._connection, failure_nodes)
                .values(failure_id=failure_id, node=node, ended_at=ended_at)
                .on_conflict_do_nothing()
            )


def headline(verdict: Mapping[str, Any]) -> str:
    """The most significant line: the first initiating evidence, else the first evidence, else the explanation."""
    evidence = verdict.get("evidence") or ()
    best = next((line for line in evidence if line.get("role") == "initiating"), None) or next(iter(evidence), None)
    text = best["text"] if best is not None else verdict.get("explanation") or ""
    return clean(text[:HEADLINE])


def _column(streams: LogsToStore) -> bytes | None:
    return streams.reference if isinstance(streams, StoredElsewhere) else pack_streams(streams)


def _fields(verdict: Mapping[str, Any], version: int, source: Source) -> tuple[Any, ...]:
    """The values of `_VERDICT_COLUMNS`, in that order."""
    suspect = verdict.get("suspect") or {}
    return (
        version,
        source,
        verdict["side"],
        verdict["cause"],
        verdict.get("category"),
        verdict.get("symptom"),
        verdict.get("platform_symptom"),
        float(verdict["confidence"]),
        bool(verdict["abstained"]),
        verdict.get("retry_outlook"),
        short(verdict["fingerprint"]),
        verdict["decision"],
        bool(verdict["resubmit"]),
        headline(verdict),
        short(suspect.get("node")),
        suspect.get("rank"),
    )


_DELTA_COLUMNS = ("failure_id", "fingerprint", "sign")
_VERSION_COLUMNS = ("failure_id", "version", "at", "source", "model", "rules", "policy", "body")


def _version(
    failure_id: int | None, version: int, at: datetime, source: Source, verdict: Mapping[str, Any]
) -> bulk.Row:
    made_by = (short(str(verdict.get(name) or ""), 100) for name in ("model", "rules", "policy"))
    return (failure_id, version, at, source, *made_by, pack(verdict))


def _distinct(nodes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(clean(node[:200]) for node in nodes))
