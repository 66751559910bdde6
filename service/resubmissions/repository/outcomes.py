"""Outcomes of requests: requests whose job has not ended yet, recorded outcomes, and tallies."""

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)

from service.contracts.advice import FAILED, HELPED, Outcome, Plan
from service.resubmissions.records import AwaitedRequest, Demotion, Request, TallyRow
from service.resubmissions.repository.request_rows import request_of
from service.resubmissions.repository.rescued import NOT_ELSEWHERE
from service.resubmissions.tables import AWAITED as AWAITED_SQL
from service.resubmissions.tables import demotions, requests
from service.sql import bulk
from service.sql.bulk import chunks, upsert
from service.sql.reader import TimedReader, record_of
from service.sql.types import UtcDateTime, clean, utc

# The same condition as that of the partial index.
_PORTION = 200  # requests of one transaction
AWAITED = and_(
    literal_column("outcome").is_(None),
    literal_column("state").in_([literal_column(f"'{state}'") for state in ("leased", "done", "unknown", "withdrawn")]),
)


def _awaited_rows(connection: Connection, columns: str) -> str:
    """The beginning of a statement that reads the index of awaited requests, which are few of all requests.

    Without the hint SQLite would read all requests in these states by the index of states: it does not know how few
    rows another index has.
    """
    own = "" if bulk.is_postgres(connection) else " INDEXED BY ix_requests_awaited"
    return f"SELECT {columns} FROM requests{own} WHERE {AWAITED_SQL}"  # noqa: S608 - texts of ours


class OutcomeReader(TimedReader):
    """Reads outcomes of requests."""

    def any_awaited(self) -> bool:
        """Whether the end of any resubmitted job is expected."""
        return self._connection.execute(text(f"{_awaited_rows(self._connection, 'id')} LIMIT 1")).first() is not None

    def awaited(
        self,
        jobs: Collection[tuple[str, str]],
        *,
        request_ids: Collection[str] = (),
        lineages: Collection[str] = (),
    ) -> list[AwaitedRequest]:
        """Requests that were (or may have been) carried out, by job, new job, request id or lineage; oldest first."""
        found: dict[int, Row[Any]] = {}
        together: dict[str, set[str]] = {}
        for cluster, job_id in jobs:
            together.setdefault(clean(cluster), set()).add(clean(job_id))
        for cluster, ids in together.items():
            for part in chunks(sorted(ids)):
                of_job = or_(requests.c.job_id.in_(part), requests.c.new_job_id.in_(part))
                self._take(found, and_(requests.c.cluster == cluster, of_job))
        for part in chunks(sorted({clean(one) for one in request_ids})):
            self._take(found, requests.c.public_id.in_(part))
        for part in chunks(sorted({clean(one) for one in lineages})):
            self._take(found, requests.c.lineage.in_(part))
        return [_awaited(found[number]) for number in sorted(found)]

    def tallies(self, since: datetime | None = None, *, started_by_hooks: bool = False) -> list[TallyRow]:
        """Outcomes of automatic requests by cluster, cause, plan and policy; `since`: recorded since then.

        `started_by_hooks`: leave out jobs that their scheduler or a person had started again before a hook acted; what
        came of them is evidence of what resubmissions help too, but not their doing. Requests without an outcome are
        always counted.
        """
        keys = (requests.c.cluster, requests.c.cause, requests.c.plan, requests.c.policy)
        outcome_column = requests.c.outcome
        ended = (
            select(*keys, outcome_column, func.count().label("many"))
            .where(requests.c.origin == "policy", requests.c.outcome_at.is_not(None))
            .group_by(*keys, outcome_column)
        )
        if since is not None:
            ended = ended.where(requests.c.outcome_at >= utc(since))
        if started_by_hooks:
            ended = ended.where(NOT_ELSEWHERE)
        names = "cluster, cause, plan, policy, outcome"
        awaited = text(
            f"{_awaited_rows(self._connection, f'{names}, count(*) AS many')} "
            f"AND origin = 'policy' AND result = 'done' GROUP BY {names}"
        )
        found: defaultdict[tuple[str, str, str, str], Counter[str | None]] = defaultdict(Counter)
        for rows in (self._connection.execute(ended), self._connection.execute(awaited)):
            for row in rows:
                found[row.cluster, row.cause, row.plan, row.policy][row.outcome] += row.many
        return [
            TallyRow(
                cluster,
                cause,
                cast("Plan", plan),
                policy,
                helped=sum(counts[one] for one in HELPED),
                failed=sum(counts[one] for one in FAILED),
                unknown=counts["unknown"],
                pending=counts[None],
            )
            for (cluster, cause, plan, policy), counts in sorted(found.items())
        ]

    def demotions(self) -> list[Demotion]:
        """The current demotions."""
        rows = self._connection.execute(select(demotions).order_by(demotions.c.at))
        return [
            Demotion(row.cluster, row.cause, row.plan, row.policy, row.at, row.helped, row.failed, row.floor)
            for row in rows
        ]

    def _take(self, found: dict[int, Row[Any]], where: ColumnElement[bool]) -> None:
        # Withdrawn requests count only if a hook reported that it had acted.
        acted = or_(requests.c.state != "withdrawn", requests.c.result.is_not(None))
        rows = self._connection.execute(select(requests).where(AWAITED, acted, where).order_by(requests.c.id))
        for row in rows:
            if row.leased_at is not None:
                found[row.id] = row


class OutcomeRepository(OutcomeReader):
    """Reads and writes outcomes of requests."""

    def record(
        self,
        request: AwaitedRequest,
        outcome: Outcome,
        *,
        attempt_id: int | None = None,
        failure_id: int | None = None,
        new_job_id: str | None = None,
    ) -> Request | None:
        """Store the outcome; None if another process did.

        A request whose job ended without a hook's answer counts as done.
        """
        values: dict[str, Any] = {
            "outcome": outcome,
            "outcome_at": self._clock.now(),
            "outcome_attempt_id": attempt_id,
            "outcome_failure_id": failure_id,
        }
        if new_job_id is not None:
            values["new_job_id"] = func.coalesce(requests.c.new_job_id, clean(new_job_id)[:200])
        if attempt_id is not None and request.state in {"leased", "unknown"}:
            # Its job started and ended before the hook answered, or without an answer.
            values |= {"state": "done", "ended_at": self._clock.now(), "leased_until": None}
        row = self._connection.execute(
            update(requests)
            .where(requests.c.id == request.id, requests.c.outcome.is_(None))
            .values(**values)
            .returning(requests)
        ).first()
        return None if row is None else request_of(row)

    def without_end_since(self, before: datetime) -> list[AwaitedRequest]:
        """Requests leased before a time whose job has no reported end."""
        overdue = text(
            f"{_awaited_rows(self._connection, 'id')} AND leased_at < :before AND result IS NOT NULL "
            "ORDER BY id LIMIT :most"
        ).bindparams(bindparam("before", utc(before), UtcDateTime), most=_PORTION)
        ids = list(self._connection.execute(overdue).scalars())
        if not ids:
            return []
        # Again with the conditions: another process may have changed a row before it is locked here.
        wanted = (
            select(requests)
            .where(requests.c.id.in_(ids), AWAITED, requests.c.leased_at < utc(before), requests.c.result.is_not(None))
            .order_by(requests.c.id)
            .with_for_update(skip_locked=True)
        )
        return [_awaited(row) for row in self._connection.execute(wanted)]

    def demote(self, one: Demotion) -> bool:
        """Store a demotion; False if it exists already."""
        made = self._connection.execute(
            upsert(self._connection, demotions)
            .values(
                cluster=one.cluster,
                cause=one.cause,
                plan=one.plan,
                policy=one.policy,
                at=one.at,
                helped=one.helped,
                failed=one.failed,
                floor=one.floor,
            )
            .on_conflict_do_nothing()
            .returning(demotions.c.cause)
        )
        return made.first() is not None

    def promote(self, one: Demotion) -> None:
        """Remove a demotion."""
        self._connection.execute(
            delete(demotions).where(
                demotions.c.cluster == one.cluster,
                demotions.c.cause == one.cause,
                demotions.c.plan == one.plan,
                demotions.c.policy == one.policy,
            )
        )


def _awaited(row: Row[Any]) -> AwaitedRequest:
    return record_of(AwaitedRequest, row, request_id=row.public_id, began=row.started_at)
