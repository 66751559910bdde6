"""Finished attempts: one narrow row for each key, stored exactly once."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from sqlalchemy import Connection, select, update

from service.contracts.kubernetes_name import kubernetes_name
from service.failures.tables import failure_nodes, failures
from service.jobs.pod_attempts import Assignments, Member, assign
from service.jobs.records import Attempt, CountedAs, JobOutcome, NewJob
from service.jobs.repository.row_mapping import COLUMNS, POSITION, attempt_of, row_of
from service.jobs.tables import JOB_IDS, counters, jobs, retired_events
from service.nodes.records import NodePlace
from service.nodes.repository import work_queue
from service.sql import bulk
from service.sql.bulk import chunks
from service.sql.portable import distinct_values
from service.sql.reader import Reader
from service.sql.types import clean, utc
from service.statistics.repository import rollups


def reserve_ids(connection: Connection, count: int) -> list[int]:
    """Reserve `count` row ids of `jobs`, ascending; no other transaction gets them."""
    if bulk.is_postgres(connection):
        found = connection.exec_driver_sql("SELECT nextval(%s::regclass) FROM generate_series(1, %s)", (JOB_IDS, count))
        return [row[0] for row in found]
    # Above all that are stored, also where the counter was lost or set back: else no job could be stored any more.
    highest = f"COALESCE((SELECT MAX(id) FROM {jobs.name}), 0)"  # noqa: S608 - a name of our own table
    last = connection.exec_driver_sql(
        f"INSERT INTO {counters.name} (name, value) VALUES (?, ? + {highest}) "  # noqa: S608 - as above
        f"ON CONFLICT (name) DO UPDATE SET value = MAX(value, {highest}) + ? RETURNING value",
        (JOB_IDS, count, count),
    ).scalar_one()
    return list(range(last - count + 1, last + 1))


def insert_new(connection: Connection, columns: Sequence[str], rows: Sequence[bulk.Row]) -> dict[str, int]:
    """Insert those rows whose event_id is not stored yet; their row ids by event_id.

    Rows are inserted in the order of their keys, so that two transactions with the same keys wait for each other in
    turn and never deadlock.
    """
    key = columns.index("event_id")
    row_id = columns.index("id")
    ordered = sorted(rows, key=lambda row: row[key])
    if bulk.is_postgres(connection):
        found = bulk.insert_returning(
            connection, jobs, columns, ordered, conflict="(event_id)", returning="event_id, id"
        )
        return {row[0]: row[1] for row in found}
    # A unit of work holds SQLite's only write lock: nothing can be inserted between these two statements.
    stored = {row[0] for row in bulk.by_keys(connection, "event_id", "jobs", [row[key] for row in ordered])}
    missing = [row for row in ordered if row[key] not in stored]
    bulk.append(connection, jobs, columns, missing)
    return {row[key]: row[row_id] for row in missing}


# Shared for inserts, exclusive for retention: a key must always be in one of the two tables.
_CLUSTERS = 100  # that a job id is looked up on
RETIREMENT_LOCK = 0x726574697265  # "retire"


def key_hash(event_id: str) -> bytes:
    """The hash of a key that is kept after its row is removed: 16 bytes."""
    return blake2b(event_id.encode("utf-8", "replace"), digest_size=16).digest()


@dataclass(slots=True)
class _Group:
    """The rows of one controller: those stored, the new ones (by position), and their assignment."""

    stored: list[Member]
    new: dict[int, int]
    assigned: Assignments


class JobReader(Reader):
    """Reads jobs."""

    def known(self, keys: Collection[str]) -> Mapping[str, bytes]:
        """The content digest of each of `keys` that is stored, or was stored until retention removed its row."""
        wanted = {clean(key): key for key in keys}
        rows = bulk.by_keys(self._connection, "event_id, digest", "jobs", wanted)
        found = {wanted[row[0]]: bytes(row[1]) for row in rows}
        left = [key for key in wanted.values() if key not in found]
        return found | {key: digest for key, (_, digest) in self._retired(left).items()}

    def any(self) -> bool:
        """Whether any attempt is stored."""
        return self._connection.execute(select(jobs.c.id).limit(1)).first() is not None

    def attempts(self, cluster: str, job_id: str) -> tuple[Attempt, ...]:
        """Every stored attempt of a job, oldest first; empty if there is none."""
        return self.attempts_of_jobs([(cluster, job_id)]).get((clean(cluster), clean(job_id)), ())

    def attempts_anywhere(self, job_id: str) -> tuple[Attempt, ...]:
        """Every stored attempt of the jobs with this id, on each of the first 100 clusters, oldest first.

        Each cluster costs one look into the index, however many jobs are stored.
        """
        clusters = distinct_values(self._connection, jobs.c.cluster, most=_CLUSTERS)
        found = self.attempts_of_jobs([(cluster, job_id) for cluster in clusters])
        return tuple(one for attempts in found.values() for one in attempts)

    def attempts_of_jobs(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], tuple[Attempt, ...]]:
        """Every stored attempt of these jobs (cluster, job id), oldest first, by cluster and job id as stored."""
        found: defaultdict[tuple[str, str], list[Attempt]] = defaultdict(list)
        for some in chunks(sorted({(clean(cluster), clean(job_id)) for cluster, job_id in wanted})):
            rows = self._connection.execute(
                select(
                    jobs,
                    failures.c.id.label("failure"),
                    *(failures.c[name] for name in ("side", "cause", "headline", "abstained")),
                )
                .outerjoin(failures, failures.c.id == jobs.c.failure_id)
                .where(bulk.row_in(self._connection, (jobs.c.cluster, jobs.c.job_id), some))
                .order_by(jobs.c.ended_at, jobs.c.id)
            )
            for row in rows:
                found[row.cluster, row.job_id].append(attempt_of(row))
        return {key: tuple(attempts) for key, attempts in found.items()}

    def _retired(self, keys: Collection[str]) -> dict[str, tuple[bytes, bytes]]:
        if not keys or self._connection.execute(select(retired_events.c.key_hash).limit(1)).first() is None:
            return {}
        by_hash = {key_hash(clean(key)): key for key in keys}
        rows = bulk.by_keys(self._connection, "key_hash, digest", retired_events.name, by_hash, key="key_hash")
        return {by_hash[bytes(row[0])]: (bytes(row[0]), bytes(row[1])) for row in rows}


class JobRepository(JobReader):
    """Reads and writes jobs."""

    def add(self, new: Sequence[NewJob]) -> list[JobOutcome]:
        """Store new attempts; one outcome for each job, in order. Repeats within `new` are duplicates or conflicts."""
        if not new:
            return []
        connection = self._connection
        bulk.lock(connection, [RETIREMENT_LOCK], shared=True)
        keys = [clean(job.event_id) for job in new]
        first: dict[str, int] = {}
        for position, key in enumerate(keys):
            first.setdefault(key, position)
        retired = {clean(key): digest for key, (_, digest) in self._retired(list(first)).items()}
        fresh = [position for key, position in first.items() if key not in retired]
        ids = dict(zip(fresh, reserve_ids(connection, len(fresh)), strict=True)) if fresh else {}
        groups = self._groups(new, keys, ids)
        rows = [row_of(new[position], keys[position], ids[position]) for position in fresh]
        place = {ids[p]: group.assigned.places[ids[p]] for group in groups for p in group.new}
        counted, failure_id = POSITION["counted"], POSITION["failure_id"]
        for n, position in enumerate(fresh):
            assigned = place.get(ids[position])
            if assigned is not None:
                row = list(rows[n])
                row[counted], row[failure_id] = assigned.counted, assigned.failure_id
                rows[n] = tuple(row)
        inserted = insert_new(connection, COLUMNS, rows)
        opened = self._settle(groups, new, keys, inserted)
        rollups.mark_stale(
            connection,
            [
                *(new[position].ended_at for position in fresh if keys[position] in inserted),
                *(member.ended for group in groups for member in group.stored),
            ],
        )
        work_queue.note(connection, "jobs", [inserted[keys[p]] for p in fresh if keys[p] in inserted])
        places = {
            (new[position].cluster, node): _queued(place)
            for position in fresh
            for node, place in new[position].places.items()
        }
        work_queue.note(connection, "places", [[*node, *place] for node, place in places.items()])
        return self._outcomes(new, keys, first, retired, inserted, opened)

    def _groups(self, new: Sequence[NewJob], keys: Sequence[str], ids: Mapping[int, int]) -> list[_Group]:
        """The controllers of this batch with their stored rows."""
        named = [p for p in ids if new[p].pod is not None or kubernetes_name(new[p].job_id) is not None]
        if not named:
            return []
        together: dict[tuple[str, str], list[int]] = {}
        for position in named:
            together.setdefault((clean(new[position].cluster), clean(new[position].job_id)), []).append(position)
        bulk.lock(self._connection, [_controller_lock(*controller) for controller in together])
        stored = self._stored(together)
        groups = []
        for controller, positions in together.items():
            members = stored.get(controller, {})
            new_here = {p: ids[p] for p in positions if keys[p] not in members}
            if new_here and (members or len(new_here) > 1):
                already = list(members.values())
                groups.append(_Group(already, new_here, assign([*already, *_members(new, new_here)])))
        return groups

    def _stored(self, controllers: Collection[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Member]]:
        found: dict[tuple[str, str], dict[str, Member]] = {}
        for cluster in {cluster for cluster, _ in controllers}:
            job_ids = [job_id for of, job_id in controllers if of == cluster]
            for part in chunks(job_ids):
                rows = self._connection.execute(
                    select(jobs, failures.c.id.label("failure"))
                    .outerjoin(failures, failures.c.id == jobs.c.failure_id)
                    .where(jobs.c.cluster == cluster, jobs.c.job_id.in_(part))
                )
                for row in rows:
                    found.setdefault((cluster, row.job_id), {})[row.event_id] = Member(
                        id=row.id,
                        own=row.pod is None,
                        began=row.started_at or row.ended_at,
                        ended=row.ended_at,
                        diagnosed=row.failure_id is not None,
                        counted=row.counted,
                        failure_id=row.failure,
                        created=row.submitted_at,
                    )
        return found

    def _settle(
        self,
        groups: Sequence[_Group],
        new: Sequence[NewJob],
        keys: Sequence[str],
        inserted: Mapping[str, int],
    ) -> dict[int, JobOutcome]:
        """Update the stored rows of each controller; returns the outcomes of its new rows by position."""
        outcomes: dict[int, JobOutcome] = {}
        for group in groups:
            planned = group.assigned
            came = {p: n for p, n in group.new.items() if inserted.get(keys[p]) == n}
            if len(came) != len(group.new):  # a key that is stored under another job: assign again without it
                group.assigned = assign([*group.stored, *_members(new, came)])
            places = group.assigned.places
            before = {member.id: (member.counted, member.failure_id) for member in group.stored}
            before |= {n: (planned.places[n].counted, planned.places[n].failure_id) for n in came.values()}
            for row_id, (counted, failure_id) in before.items():
                place = places[row_id]
                if (place.counted, place.failure_id) != (counted, failure_id):
                    self._connection.execute(
                        update(jobs)
                        .where(jobs.c.id == row_id)
                        .values(counted=place.counted, failure_id=place.failure_id)
                    )
            facts = self._facts(group, new, came)
            for position, row_id in came.items():
                place = places[row_id]
                counts = facts.get(row_id) if place.opens else None
                outcomes[position] = JobOutcome("new", row_id, place.failure_id, place.opens, counts)
        return outcomes

    def _facts(self, group: _Group, new: Sequence[NewJob], came: Mapping[int, int]) -> dict[int, CountedAs]:
        """How each failure of the controller counts; failures that are stored already are updated."""
        places, opened = group.assigned.places, {}
        by_id = {row_id: new[position] for position, row_id in came.items()}
        for failure_id, row_id in group.assigned.stands_for.items():
            # A run that succeeds after a failed pod is not a failed job: its failure stays, uncounted.
            counted = places[row_id].failure_id == failure_id
            facts = self._counted_as(row_id if counted else failure_id, by_id, counted=counted)
            if failure_id in by_id and places[failure_id].opens:
                opened[failure_id] = facts
                continue
            self._connection.execute(
                update(failures)
                .where(failures.c.id == failure_id)
                .values(
                    counted=facts.counted,
                    status=facts.status,
                    ended_at=facts.ended_at,
                    gpu_hours_lost=facts.gpu_hours_lost,
                )
            )
            self._connection.execute(
                update(failure_nodes).where(failure_nodes.c.failure_id == failure_id).values(ended_at=facts.ended_at)
            )
        return opened

    def _counted_as(self, row_id: int, by_id: Mapping[int, NewJob], *, counted: bool) -> CountedAs:
        job = by_id.get(row_id)
        if job is not None:
            return CountedAs(counted, job.status, job.ended_at, job.gpu_hours_lost)
        row = self._connection.execute(
            select(jobs.c.status, jobs.c.ended_at, jobs.c.gpu_hours_lost).where(jobs.c.id == row_id)
        ).one()
        return CountedAs(counted, row.status, row.ended_at, row.gpu_hours_lost)

    def _outcomes(
        self,
        new: Sequence[NewJob],
        keys: Sequence[str],
        first: Mapping[str, int],
        retired: Mapping[str, bytes],
        inserted: Mapping[str, int],
        settled: Mapping[int, JobOutcome],
    ) -> list[JobOutcome]:
        stored: dict[str, tuple[int, bytes, int | None]] = {}
        older = [key for key in first if key not in inserted and key not in retired]
        for key, row_id, digest, failure_id in bulk.by_keys(
            self._connection, "event_id, id, digest, failure_id", "jobs", older
        ):
            stored[key] = (row_id, bytes(digest), failure_id)
        outcomes: list[JobOutcome] = []
        conflicts: dict[int, int] = {}
        for position, (job, key) in enumerate(zip(new, keys, strict=True)):
            if first[key] == position and key in inserted:
                row_id = inserted[key]
                plain = JobOutcome("new", row_id, row_id if job.diagnosed else None, job.diagnosed)
                outcomes.append(settled.get(position, plain))
                continue
            if key in retired:
                outcomes.append(JobOutcome("duplicate" if retired[key] == job.digest else "conflict", None))
                continue
            if key in inserted:
                earlier = outcomes[first[key]]
                known = (inserted[key], new[first[key]].digest, earlier.failure_id)
            else:
                known = stored[key]
            row_id, digest, failure_id = known
            if digest == job.digest:
                outcomes.append(JobOutcome("duplicate", row_id, failure_id))
            else:
                conflicts[row_id] = conflicts.get(row_id, 0) + 1
                outcomes.append(JobOutcome("conflict", row_id, failure_id))
        for row_id in sorted(conflicts):
            self._connection.execute(
                update(jobs).where(jobs.c.id == row_id).values(conflicts=jobs.c.conflicts + conflicts[row_id])
            )
        return outcomes


def _queued(place: NodePlace) -> list[str | None]:
    """A place as a work item holds it; without a block as releases wrote it that knew none."""
    names = [place.rack, place.switch, place.zone]
    return names if place.block is None else [*names, place.block]


def _controller_lock(cluster: str, job_id: str) -> int:
    digest = blake2b(f"{cluster}\0{job_id}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _members(new: Sequence[NewJob], ids: Mapping[int, int]) -> list[Member]:
    return [
        Member(
            id=row_id,
            own=new[position].pod is None,
            began=utc(new[position].started_at or new[position].ended_at),
            ended=utc(new[position].ended_at),
            diagnosed=new[position].diagnosed,
            new=True,
            created=None if (created := new[position].submitted_at) is None else utc(created),
        )
        for position, row_id in ids.items()
    ]
