"""Diagnosed failures: fields of the current verdict for lists, all verdict versions, and the logs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from service.clock import Clock
from service.contracts.page import Page
from service.errors import NotFound
from service.failures.records import (
    AttemptLogs,
    FailureDetail,
    FailureFilter,
    FailureRow,
    FailureSort,
    GroupShares,
    NewFailure,
    Source,
    VerdictVersion,
)
from service.failures.repository import facets, log_rows, search, solved, verdict_versions
from service.failures.repository.list_parts import page
from service.failures.repository.listing import JOB_FACTS, row_of
from service.failures.repository.verdict_versions import (
    DELTA_COLUMNS,
    VERDICT_COLUMNS,
    VERSION_COLUMNS,
    NewVersion,
    fields_of,
    row_of_version,
)
from service.failures.tables import failure_nodes, failures, verdicts
from service.groups.tables import group_deltas
from service.jobs.records import Attempt, CountedAs
from service.jobs.repository.jobs import JobReader
from service.jobs.same_job import runs_of_job
from service.jobs.tables import jobs
from service.log_storage.log_bodies import DatabaseLogs, LogBodies
from service.log_storage.records import LogsToStore
from service.sql import bulk
from service.sql.bulk import upsert
from service.sql.packing import unpack
from service.sql.reader import record_of
from service.sql.types import HIGHEST_ID, clean, names_of, short, utc

_JOB_COLUMNS = ("id", "cluster", "status", "user_name", "team", "queue", "ended_at", "gpu_hours_lost", "counted")


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
        found = self.details([failure_id]).get(failure_id)
        if found is None:
            raise NotFound(f"no failure {failure_id}")
        return found

    def details(self, failure_ids: Sequence[int]) -> dict[int, FailureDetail]:
        """Everything that is stored about failures, by id, with one query a table; unknown ids are left out."""
        rows = self.rows([one for one in failure_ids if 0 < one <= HIGHEST_ID])
        if not rows:
            return {}
        versions = self._versions(list(rows))
        attempts = JobReader(self._connection).attempts_of_jobs({(row.cluster, row.job_id) for row in rows.values()})
        ends = [one.ended_at for runs in attempts.values() for one in runs]
        kept = log_rows.read(self._connection, self._log_bodies, list(rows), ends)
        return {
            number: _detail(row, versions[number], kept[number], attempts.get((row.cluster, row.job_id), ()))
            for number, row in rows.items()
        }

    def _versions(self, failure_ids: Sequence[int]) -> Mapping[int, list[VerdictVersion]]:
        """The versions of the verdict of each failure, newest first."""
        found: defaultdict[int, list[VerdictVersion]] = defaultdict(list)
        wanted = select(verdicts).where(verdicts.c.failure_id.in_(failure_ids)).order_by(verdicts.c.version.desc())
        for row in self._connection.execute(wanted):
            found[row.failure_id].append(
                record_of(VerdictVersion, row, body=None if row.body is None else unpack(row.body))
            )
        return found

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

    def group_shares(self, filters: FailureFilter, *, most: int) -> GroupShares:
        """The most frequent groups among the newest failures that match a filter without words and group."""
        return facets.group_shares(self._connection, filters, most=most)

    def facets(self, filters: FailureFilter) -> facets.FacetCounts:
        """The most common values of each filter among the newest matching failures."""
        return facets.count(self._connection, filters)


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
                    *fields_of(verdict, 1, failure.source),
                )
            )
            nodes.extend((failure_id, node, ended_at) for node in _distinct(job.nodes))
        connection = self._connection
        bulk.append(connection, failures, (*_JOB_COLUMNS, *VERDICT_COLUMNS), rows)
        bulk.append(connection, failure_nodes, ("failure_id", "node", "ended_at"), nodes)
        # Compressed while they are written, so that client and server work in parallel.
        bodies = (row_of_version(one.outcome.id, 1, now, one.source, one.verdict) for one in new)
        bulk.append(connection, verdicts, VERSION_COLUMNS, bodies)
        log_rows.add(connection, new)
        search.add(connection, [(one.outcome.id or 0, search.searchable_text(one.verdict)) for one in new])
        counted = [(one.outcome.id, short(one.verdict["fingerprint"]), 1) for one in new]
        bulk.append(connection, group_deltas, DELTA_COLUMNS, counted)

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
        current = verdict_versions.lock(self._connection, [failure_id]).get(failure_id)
        if current is None:
            raise NotFound(f"no failure {failure_id}")
        if attempt_id is not None:
            self._store_logs(failure_id, current.ended_at, attempt_id, streams, event)
        if current.source == "person" and source == "machine" and not over_person:
            return None
        verdict_versions.add(self._connection, [NewVersion(current, source, verdict)], self._clock.now())
        return current.version + 1

    def lock(self, failure_ids: Sequence[int]) -> None:
        """Let no other transaction change these failures, or what people say of them, until this one ends."""
        verdict_versions.lock(self._connection, failure_ids)

    def revise_unchanged(self, new: Mapping[int, tuple[int, Mapping[str, Any]]]) -> list[int]:
        """Store new versions of machines' verdicts where the current version is still the one that was read.

        Args:
            new: by failure the number of the version that was read, and the new verdict.

        Returns:
            The failures whose new version was stored. Those that are deleted or have another version meanwhile, a
            newer verdict or a person's, are left out.
        """
        current = verdict_versions.lock(self._connection, list(new))
        unchanged = [
            one for number, one in current.items() if one.version == new[number][0] and one.source == "machine"
        ]
        made = [NewVersion(one, "machine", new[one.failure_id][1]) for one in unchanged]
        verdict_versions.add(self._connection, made, self._clock.now())
        return [one.failure_id for one in unchanged]

    def attach(self, failure_id: int, attempt_id: int, streams: LogsToStore, event: Mapping[str, Any]) -> None:
        """Store an attempt's logs with a failure that another attempt opened, without a new verdict.

        Raises:
            NotFound: no such failure.
        """
        current = verdict_versions.lock(self._connection, [failure_id]).get(failure_id)
        if current is None:
            raise NotFound(f"no failure {failure_id}")
        self._store_logs(failure_id, current.ended_at, attempt_id, streams, event)

    def _store_logs(
        self,
        failure_id: int,
        ended_at: datetime,
        attempt_id: int,
        streams: LogsToStore | None,
        event: Mapping[str, Any] | None,
    ) -> None:
        job = self._connection.execute(
            select(jobs.c.nodes, jobs.c.ended_at).where(jobs.c.id == attempt_id)
        ).one_or_none()
        own_end = ended_at if job is None else job.ended_at
        log_rows.put(self._connection, failure_id, attempt_id, own_end, streams, event)
        for node in _distinct(names_of(None if job is None else job.nodes)):
            self._connection.execute(
                upsert(self._connection, failure_nodes)
                .values(failure_id=failure_id, node=node, ended_at=ended_at)
                .on_conflict_do_nothing()
            )


def _detail(
    row: FailureRow,
    versions: Sequence[VerdictVersion],
    attempt_logs: Sequence[AttemptLogs],
    attempts: tuple[Attempt, ...],
) -> FailureDetail:
    """The record of one failure; `attempts`: those of all jobs with its cluster and job id."""
    current = next((found.body for found in versions if found.version == row.version), None)
    own = next((attempt for attempt in attempts if attempt.id == row.id), None)
    of_job = attempts if own is None else runs_of_job(attempts, own)
    return FailureDetail(row, current, tuple(versions), tuple(attempt_logs), of_job)


def _distinct(nodes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(clean(node[:200]) for node in nodes))
