"""Incidents: a shared resource, the failures that belong to the incident, and its history."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Integer, Row, Select, bindparam, func, or_, select, update

from service.contracts.page import Page
from service.errors import NotFound
from service.failures.tables import failures
from service.incidents.records import Incident, IncidentDetail, IncidentJob, IncidentNote, MemberCounts, NewIncident
from service.incidents.tables import incident_jobs, incident_notes, incidents
from service.jobs.tables import jobs
from service.resubmissions.tables import lineages, requests
from service.sql import paging as cursors
from service.sql.bulk import chunks, upsert
from service.sql.reader import TimedReader, record_of
from service.sql.types import short, utc


def count_members(connection: Connection, incident_id: int) -> MemberCounts:
    """The counts of one incident. Attempts whose job retention removed count as one job each."""
    attempts, users, known = connection.execute(
        select(
            func.count(),
            func.count(incident_jobs.c.user_name.distinct()),
            func.count(jobs.c.id),
        )
        .select_from(incident_jobs.outerjoin(jobs, jobs.c.id == incident_jobs.c.failure_id))
        .where(incident_jobs.c.incident_id == incident_id)
    ).one()
    removed = attempts - known
    # Clusters reuse job ids; another user's job with the same id is another job.
    user = func.coalesce(jobs.c.user_name, "")
    root = func.coalesce(lineages.c.root_job_id, jobs.c.job_id)
    same = (lineages.c.cluster == jobs.c.cluster) & (lineages.c.job_id == jobs.c.job_id)
    distinct_jobs, distinct_roots = (
        select(jobs.c.cluster, key.label("key"), user.label("user"))
        .select_from(incident_jobs.join(jobs, jobs.c.id == incident_jobs.c.failure_id).outerjoin(lineages, same))
        .where(incident_jobs.c.incident_id == incident_id)
        .distinct()
        .subquery()
        for key in (jobs.c.job_id, root)
    )
    many_jobs, many_roots = (
        int(connection.execute(select(func.count()).select_from(one)).scalar_one())
        for one in (distinct_jobs, distinct_roots)
    )
    return MemberCounts(int(attempts), many_jobs + removed, many_roots + removed, int(users))


JOBS_SHOWN = 500


class IncidentReader(TimedReader):
    """Reads incidents."""

    def opened(self, cluster: str | None = None) -> list[Incident]:
        """The open incidents, oldest first."""
        wanted = select(incidents).where(incidents.c.closed_at.is_(None))
        if cluster is not None:
            wanted = wanted.where(incidents.c.cluster == short(cluster))
        return [_incident(row) for row in self._connection.execute(wanted.order_by(incidents.c.id))]

    def within(self, since: datetime, until: datetime, *, cluster: str | None, most: int) -> list[Incident]:
        """The incidents that were open at some time in [since, until), newest first; of one cluster or of all."""
        statement = _within(of_cluster=cluster is not None)
        values = {"since": utc(since), "until": utc(until), "most": most, **_named(cluster)}
        return [_incident(row) for row in self._connection.execute(statement, values)]

    def over(self, key: str, *, most: int) -> list[Incident]:
        """The incidents over one shared resource, open or closed, newest first."""
        wanted = select(incidents).where(incidents.c.fold_key == key).order_by(incidents.c.id.desc()).limit(most)
        return [_incident(row) for row in self._connection.execute(wanted)]

    def open_incident_of(self, failure_ids: Collection[int]) -> dict[int, int]:
        """The open incident of each of these failures that belongs to one."""
        if not failure_ids:
            return {}
        rows = self._connection.execute(
            select(incident_jobs.c.failure_id, incident_jobs.c.incident_id)
            .join(incidents, incidents.c.id == incident_jobs.c.incident_id)
            .where(incident_jobs.c.failure_id.in_(sorted(failure_ids)), incidents.c.closed_at.is_(None))
        )
        return {row.failure_id: row.incident_id for row in rows}

    def of_failure(self, failure_id: int) -> list[Incident]:
        """Every incident, open or closed, that a failure belongs to, newest first."""
        wanted = (
            select(incidents)
            .join(incident_jobs, incident_jobs.c.incident_id == incidents.c.id)
            .where(incident_jobs.c.failure_id == failure_id)
        )
        return [_incident(row) for row in self._connection.execute(wanted.order_by(incidents.c.id.desc()))]

    def gpu_hours_lost(self, incident_id: int) -> float:
        """The GPU-hours that the failed attempts of an incident lost, of those that are still stored."""
        lost = (
            select(func.coalesce(func.sum(jobs.c.gpu_hours_lost), 0.0))
            .select_from(incident_jobs.join(jobs, jobs.c.id == incident_jobs.c.failure_id))
            .where(incident_jobs.c.incident_id == incident_id)
        )
        return float(self._connection.execute(lost).scalar_one())

    def get(self, incident_id: int) -> IncidentDetail:
        """One incident with its jobs and its history.

        Raises:
            NotFound: no such incident.
        """
        row = self._connection.execute(select(incidents).where(incidents.c.id == incident_id)).first()
        if row is None:
            raise _unknown(incident_id)
        members = self._connection.execute(
            select(incident_jobs, failures.c.cluster, jobs.c.job_id)
            .join(failures, failures.c.id == incident_jobs.c.failure_id)
            .join(jobs, jobs.c.id == failures.c.id)
            .where(incident_jobs.c.incident_id == incident_id)
            .order_by(incident_jobs.c.at.desc(), incident_jobs.c.failure_id.desc())
            .limit(JOBS_SHOWN)
        ).all()
        newest: dict[int, Any] = {}
        if members:
            of = select(requests.c.failure_id, requests.c.public_id, requests.c.state, requests.c.outcome).where(
                requests.c.failure_id.in_([one.failure_id for one in members])
            )
            newest = {one.failure_id: one for one in self._connection.execute(of.order_by(requests.c.id))}
        shown = []
        for one in members:
            request = newest.get(one.failure_id)
            shown.append(
                IncidentJob(
                    failure_id=one.failure_id,
                    at=one.at,
                    user=one.user_name,
                    job_id=one.job_id,
                    cluster=one.cluster,
                    request_id=None if request is None else request.public_id,
                    request_state=None if request is None else request.state,
                    outcome=None if request is None else request.outcome,
                )
            )
        history = self._connection.execute(
            select(incident_notes).where(incident_notes.c.incident_id == incident_id).order_by(incident_notes.c.id)
        )
        notes = tuple(IncidentNote(line.at, line.by, line.what, line.text) for line in history)
        counts = count_members(self._connection, incident_id)
        [incident] = self._with_held([_incident(row)])
        if counts.attempts:  # earlier releases stored the number of attempts
            incident = replace(incident, jobs=counts.jobs, users=counts.users)
        return IncidentDetail(incident, tuple(shown), notes, counts)

    def page(
        self,
        *,
        still_open: bool | None = None,
        cluster: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[Incident]:
        """One page, newest first; of a period those that were open in it.

        Raises:
            InvalidInput: a limit out of range (1-500), a cursor that is not of this list.
        """
        cursors.check_limit(limit)
        values: dict[str, Any] = {"most": limit + 1, **_named(cluster)}
        if cursor is not None:
            (values["before"],) = cursors.decode(cursor, "incidents", int)
        statement = _page(still_open, of_cluster=cluster is not None, continued=cursor is not None)
        if since is not None:
            statement = statement.where(or_(incidents.c.closed_at.is_(None), incidents.c.closed_at >= utc(since)))
        if until is not None:
            statement = statement.where(incidents.c.opened_at < utc(until))
        rows = self._connection.execute(statement, values).all()
        items = self._with_held([_incident(row) for row in rows[:limit]])
        return Page(tuple(items), cursors.encode("incidents", rows[limit - 1].id) if len(rows) > limit else None)

    def _with_held(self, found: Sequence[Incident]) -> list[Incident]:
        if not found:
            return []
        rows = self._connection.execute(
            select(requests.c.incident_id, func.count())
            .where(requests.c.incident_id.in_([one.id for one in found]), requests.c.state == "held")
            .group_by(requests.c.incident_id)
        )
        held: dict[int, int] = {row[0]: row[1] for row in rows}
        probes = [one.probe_row for one in found if one.probe_row is not None]
        public: dict[int, str] = {}
        if probes:
            named = select(requests.c.id, requests.c.public_id).where(requests.c.id.in_(probes))
            public = {row.id: row.public_id for row in self._connection.execute(named)}
        return [_shown(one, held.get(one.id, 0), public) for one in found]


class IncidentRepository(IncidentReader):
    """Reads and writes incidents."""

    def open(self, new: NewIncident) -> tuple[Incident, bool]:
        """Open an incident, or return the open one over the same resource with False."""
        now = utc(self._clock.now())
        made = self._connection.execute(
            upsert(self._connection, incidents)
            .values(
                fold_key=short(new.key, 300),
                kind=new.kind,
                value=short(new.value),
                cluster=short(new.cluster),
                cause=new.cause,
                title=short(new.title, 300),
                state="holding",
                by_hand=new.by_hand,
                opened_at=now,
                last_at=now,
                jobs=0,
                users=0,
                probes=0,
                probe_at=None if new.probe_at is None else utc(new.probe_at),
            )
            .on_conflict_do_nothing()
            .returning(incidents)
        ).first()
        if made is not None:
            self.note(made.id, new.by, "opened", new.title)
            return _incident(made), True
        there = self._connection.execute(
            select(incidents).where(incidents.c.fold_key == short(new.key, 300), incidents.c.closed_at.is_(None))
        ).one()
        return _incident(there), False

    def get_locked(self, incident_id: int) -> Incident:
        """One incident, locked until this transaction ends.

        Raises:
            NotFound: no such incident.
        """
        row = self._connection.execute(select(incidents).where(incidents.c.id == incident_id).with_for_update()).first()
        if row is None:
            raise _unknown(incident_id)
        return _incident(row)

    def change(self, incident_id: int, **values: Any) -> Incident:
        """Set columns of an incident; returns it."""
        row = self._connection.execute(
            update(incidents).where(incidents.c.id == incident_id).values(**values).returning(incidents)
        ).one()
        return _incident(row)

    def add_failures(self, incident_id: int, failures_by_id: Mapping[int, tuple[datetime, str | None]]) -> int:
        """Add failures (end and user by id) and count jobs and users again; returns how many failures were new."""
        rows = [
            {"incident_id": incident_id, "failure_id": failure, "at": utc(at), "user_name": short(user)}
            for failure, (at, user) in sorted(failures_by_id.items())
        ]
        if not rows:
            return 0
        self.get_locked(incident_id)  # the counts then include all committed failures
        before = count_members(self._connection, incident_id)
        for part in chunks(rows):
            self._connection.execute(upsert(self._connection, incident_jobs).on_conflict_do_nothing(), part)
        after = count_members(self._connection, incident_id)
        if after != before:
            self._connection.execute(
                update(incidents)
                .where(incidents.c.id == incident_id)
                .values(jobs=after.jobs, users=after.users, last_at=self._clock.now())
            )
        return after.attempts - before.attempts

    def note(self, incident_id: int, actor: str, what: str, text: str) -> None:
        """Add a line to the history of an incident."""
        self._connection.execute(
            incident_notes.insert().values(
                incident_id=incident_id, at=self._clock.now(), by=short(actor), what=what, text=short(text, 2_000)
            )
        )


@cache
def _within(*, of_cluster: bool) -> Select[Any]:
    """The query of `IncidentReader.within`, made once: its parameters are `since`, `until`, `most` and `cluster`."""
    since, until = (bindparam(name, type_=incidents.c.opened_at.type) for name in ("since", "until"))
    wanted = select(incidents).where(
        incidents.c.opened_at < until, incidents.c.closed_at.is_(None) | (incidents.c.closed_at > since)
    )
    return _newest_first(wanted, of_cluster=of_cluster)


@cache
def _page(still_open: bool | None, *, of_cluster: bool, continued: bool) -> Select[Any]:  # noqa: FBT001 - None: any
    """The query of `IncidentReader.page`, made once: its parameters are `before`, `most` and `cluster`."""
    wanted = select(incidents)
    if still_open is not None:
        wanted = wanted.where(incidents.c.closed_at.is_(None) if still_open else incidents.c.closed_at.is_not(None))
    if continued:
        wanted = wanted.where(incidents.c.id < bindparam("before", type_=incidents.c.id.type))
    return _newest_first(wanted, of_cluster=of_cluster)


def _newest_first(wanted: Select[Any], *, of_cluster: bool) -> Select[Any]:
    if of_cluster:
        wanted = wanted.where(incidents.c.cluster == bindparam("cluster"))
    return wanted.order_by(incidents.c.id.desc()).limit(bindparam("most", type_=Integer))


def _named(cluster: str | None) -> dict[str, str | None]:
    return {} if cluster is None else {"cluster": short(cluster)}


def _shown(one: Incident, held: int, public: Mapping[int, str]) -> Incident:
    probe = None if one.probe_row is None else public.get(one.probe_row)
    return replace(one, held=held, probe=probe)


def _unknown(incident_id: int) -> NotFound:
    return NotFound(f"no incident {incident_id}")


def _incident(row: Row[Any]) -> Incident:
    return record_of(Incident, row, key=row.fold_key, probe_row=row.probe_id, probe=None, held=0)
