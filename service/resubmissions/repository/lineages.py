"""Lineages: a job and all jobs resubmitted from it.

A resubmitted job has a row. Any other job is the root of its own lineage, whose key is computed from its name, so that
jobs that are never resubmitted need no row. Keys are valid labels of schedulers.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b

from sqlalchemy import and_, delete, exists, or_, select, update

from service.failures.tables import failures
from service.jobs.tables import jobs
from service.resubmissions.records import OPEN_STATES, LineageMember, Mark, PastAttempt
from service.resubmissions.tables import advice_history, lineage_marks, lineages, requests
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.reader import TimedReader, record_of
from service.sql.types import clean, short

Job = tuple[str, str]  # cluster, job_id
# Of one job, which are read with each further run of it (judgement): far more than any limit of a policy counts.
RUNS_MOST = 1_000


def key_of(cluster: str, job_id: str) -> str:
    """The key of the lineage whose first job this is."""
    digest = blake2b(f"{clean(cluster)}\0{clean(job_id)}".encode("utf-8", "replace"), digest_size=10)
    return "l" + digest.hexdigest()


class LineageReader(TimedReader):
    """Reads lineages."""

    def find(self, wanted: Collection[Job]) -> dict[Job, LineageMember]:
        """The lineage of each of these jobs; roots and unknown jobs are absent."""
        found: dict[Job, LineageMember] = {}
        for cluster, ids in _by_cluster(wanted):
            rows = self._connection.execute(
                select(lineages).where(
                    lineages.c.cluster == clean(cluster), bulk.one_of(self._connection, lineages.c.job_id, ids)
                )
            )
            for row in rows:
                found[cluster, row.job_id] = LineageMember(row.lineage, row.root_job_id)
        return found

    def of_failures(self, failure_ids: Collection[int]) -> dict[int, str]:
        """The lineage key of each of these failures, by failure id; unknown ids are absent."""
        of_job: dict[int, Job] = {}
        ids = sorted(failure_ids)
        for part in chunks(ids):
            rows = self._connection.execute(select(jobs.c.id, jobs.c.cluster, jobs.c.job_id).where(jobs.c.id.in_(part)))
            of_job |= {row.id: (row.cluster, row.job_id) for row in rows}
        known = self.find(set(of_job.values()))
        return {failure_id: known[job].lineage if job in known else key_of(*job) for failure_id, job in of_job.items()}

    def members(self, keys: Collection[str]) -> dict[str, list[Job]]:
        """The jobs of each lineage, without its root."""
        found: dict[str, list[Job]] = {}
        if keys:
            for row in self._connection.execute(select(lineages).where(lineages.c.lineage.in_(sorted(keys)))):
                found.setdefault(row.lineage, []).append((row.cluster, row.job_id))
        return found

    def attempts(self, wanted: Collection[Job], *, except_ids: Collection[int] = ()) -> list[PastAttempt]:
        """The stored runs of these jobs, of each the newest 1,000, except the rows `except_ids`; ordered by end.

        Of a run of several pods it is the attempt that opened the failure.
        """
        found: list[PastAttempt] = []
        leave = set(except_ids)
        columns = (
            *(jobs.c.id, jobs.c.job_id, jobs.c.status, jobs.c.started_at, jobs.c.ended_at),
            *(failures.c.id.label("failure"), failures.c.side, failures.c.fingerprint),
            advice_history.c.step,
            *(jobs.c.user_name, jobs.c.name, jobs.c.pod, jobs.c.attempt, jobs.c.submitted_at),
        )
        of_verdict = and_(advice_history.c.failure_id == failures.c.id, advice_history.c.version == failures.c.version)
        for cluster, ids in _by_cluster(wanted):
            older = [row_id for row_id in self._runs(clean(cluster), ids) if row_id not in leave]
            for part in chunks(older):
                rows = self._connection.execute(
                    select(*columns)
                    .outerjoin(failures, failures.c.id == jobs.c.id)
                    .outerjoin(advice_history, of_verdict)
                    .where(jobs.c.id.in_(part))
                    .where(or_(failures.c.id.is_not(None), and_(jobs.c.counted, jobs.c.failure_id.is_(None))))
                )
                found.extend(
                    record_of(PastAttempt, row, cluster=cluster, failure_id=row.failure, user=row.user_name)
                    for row in rows
                )
        return sorted(found, key=lambda one: (one.ended_at, one.id))

    def _runs(self, cluster: str, job_ids: Sequence[str]) -> list[int]:
        """The row numbers of the newest runs of these jobs."""
        of_job: defaultdict[str, list[int]] = defaultdict(list)
        for job_id, number in self._numbered_runs(cluster, job_ids):
            of_job[job_id].append(number)
        return [number for numbers in of_job.values() for number in sorted(numbers)[-RUNS_MOST:]]

    def _numbered_runs(self, cluster: str, job_ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        """The job id and the row number of each run of these jobs."""
        if bulk.is_postgres(self._connection):
            # OFFSET 0 forces one index scan per job, whatever the statistics of a quickly growing table are.
            there = (
                "SELECT given.job_id, found.id FROM unnest(%s::text[]) AS given (job_id) CROSS JOIN LATERAL "
                "(SELECT id FROM jobs WHERE cluster = %s AND jobs.job_id = given.job_id OFFSET 0) AS found"
            )
            rows = self._connection.exec_driver_sql(there, (job_ids, cluster))
        else:
            wanted = select(jobs.c.job_id, jobs.c.id).where(jobs.c.cluster == cluster, jobs.c.job_id.in_(job_ids))
            rows = self._connection.execute(wanted)
        return ((row[0], row[1]) for row in rows)

    def marks(self, keys: Collection[str] | None = None) -> dict[str, tuple[Mark, str, datetime]]:
        """The mark on each of these lineages (None: on all): mark, person, time."""
        wanted = select(lineage_marks)
        if keys is not None:
            if not keys:
                return {}
            wanted = wanted.where(or_(*(lineage_marks.c.lineage.in_(part) for part in chunks(sorted(keys)))))
        return {row.lineage: (row.mark, row.by, row.at) for row in self._connection.execute(wanted)}

    def mark_on(self, cluster: str, job_id: str) -> tuple[str, str] | None:
        """The mark on a job's lineage and the person who set it; None if there is none."""
        own = (cluster, job_id)
        joined = self.find([own]).get(own)
        key = key_of(*own) if joined is None else joined.lineage
        found = self.marks([key]).get(key)
        return None if found is None else (found[0], found[1])

    def any_marks(self) -> bool:
        """Whether any mark is stored."""
        return self._connection.execute(select(lineage_marks.c.lineage).limit(1)).first() is not None


class LineageRepository(LineageReader):
    """Reads and writes lineages."""

    def join(self, joined: Mapping[Job, LineageMember]) -> None:
        """Store these jobs as members of lineages. Jobs that were resubmitted from them before move along."""
        now = self._clock.now()
        for (cluster, job_id), to in sorted(joined.items()):
            own = key_of(cluster, job_id)
            if own == to.lineage:
                continue
            self._connection.execute(
                upsert(self._connection, lineages)
                .values(
                    cluster=short(cluster),
                    job_id=short(job_id),
                    lineage=to.lineage,
                    root_job_id=short(to.root_job_id),
                    at=now,
                )
                .on_conflict_do_nothing()
            )
            self._connection.execute(
                update(lineages)
                .where(lineages.c.lineage == own)
                .values(lineage=to.lineage, root_job_id=short(to.root_job_id))
            )
            # Only one open request of a lineage may be stored: that of the job moves if there is no other.
            closed = requests.c.state.not_in(OPEN_STATES)
            others = requests.alias()
            other = exists().where(others.c.lineage == to.lineage, others.c.state.in_(OPEN_STATES))
            self._connection.execute(
                update(requests).where(requests.c.lineage == own, closed | ~other).values(lineage=to.lineage)
            )
            marks = lineage_marks.alias()
            marked = exists().where(marks.c.lineage == to.lineage)
            self._connection.execute(
                update(lineage_marks).where(lineage_marks.c.lineage == own, ~marked).values(lineage=to.lineage)
            )

    def mark(self, lineage: str, mark: Mark, *, actor: str, comment: str | None = None) -> None:
        """Set a person's mark on a lineage; it replaces an earlier one."""
        values = {"mark": mark, "at": self._clock.now(), "by": short(actor), "comment": short(comment, 2_000)}
        made = upsert(self._connection, lineage_marks).values(lineage=lineage, **values)
        self._connection.execute(made.on_conflict_do_update(index_elements=["lineage"], set_=values))

    def unmark(self, lineage: str) -> None:
        """Remove the mark on a lineage."""
        self._connection.execute(delete(lineage_marks).where(lineage_marks.c.lineage == lineage))


def _by_cluster(wanted: Iterable[Job]) -> Iterable[tuple[str, Sequence[str]]]:
    together: dict[str, set[str]] = {}
    for cluster, job_id in wanted:
        together.setdefault(cluster, set()).add(clean(job_id))
    for cluster, ids in together.items():
        for part in chunks(sorted(ids)):
            yield cluster, part
