"""What fixed failures, one of the ten mitigations of Gao et al. each: table, records and queries."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Column, ColumnElement, Index, String, Table, delete, exists, func, select

from service.contracts.advice import HELPED
from service.failures.records import FailureRow
from service.failures.tables import failures
from service.jobs.tables import jobs
from service.resubmissions.tables import requests
from service.sql.bulk import upsert
from service.sql.reader import TimedReader
from service.sql.types import BigId, UtcDateTime, clean, metadata, utc

NEAR = 200  # failures of the fingerprint, or of the cause, that are searched, newest first

# The mitigation that fixed a failure according to a person; the latest report.
applied_fixes = Table(
    "mended",
    metadata,
    Column("failure_id", BigId, primary_key=True, autoincrement=False),
    Column("code", String(4), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("who", String(200), nullable=False),
    Index("ix_mended_at", "at"),
)


@dataclass(frozen=True, slots=True)
class ReportedFix:
    """One person's report of what fixed a failure. `code`: M1 to M10."""

    failure_id: int
    code: str
    at: datetime
    who: str


@dataclass(frozen=True, slots=True)
class NearestFix:
    """What fixed the nearest failure. `alike`: of the same fingerprint, otherwise only of the same cause."""

    by: ReportedFix
    cluster: str
    job_id: str
    alike: bool


@dataclass(frozen=True, slots=True)
class FixCount:
    """The number of failures of a cause on a cluster that one mitigation fixed."""

    cluster: str
    cause: str
    code: str
    many: int


class AppliedFixReader(TimedReader):
    """Reads applied fixes."""

    def of(self, failure_id: int) -> ReportedFix | None:
        """What fixed a failure; None if it was not reported."""
        row = self._connection.execute(select(applied_fixes).where(applied_fixes.c.failure_id == failure_id)).first()
        return None if row is None else ReportedFix(row.failure_id, row.code, row.at, row.who)

    def nearest(self, row: FailureRow) -> NearestFix | None:
        """The newest fixed failure with the same fingerprint, or else of the same cause."""
        for alike, same in ((True, failures.c.fingerprint == row.fingerprint), (False, failures.c.cause == row.cause)):
            found = self._latest(same, row.id)
            if found is not None:
                return NearestFix(found[0], found[1], found[2], alike)
        return None

    def counts(self, since: datetime) -> list[FixCount]:
        """Reports since a time by cluster, cause (of the current verdict) and mitigation.

        Resubmits with a recorded successful outcome are counted there and left out here.
        """
        known = exists().where(
            requests.c.failure_id == applied_fixes.c.failure_id,
            requests.c.outcome.in_(HELPED),
            applied_fixes.c.code == "M1",
        )
        found = self._connection.execute(
            select(failures.c.cluster, failures.c.cause, applied_fixes.c.code, func.count().label("many"))
            .select_from(applied_fixes.join(failures, failures.c.id == applied_fixes.c.failure_id))
            .where(applied_fixes.c.at >= utc(since), ~known)
            .group_by(failures.c.cluster, failures.c.cause, applied_fixes.c.code)
        )
        return [FixCount(row.cluster, row.cause, row.code, row.many) for row in found]

    def between(
        self, since: datetime, until: datetime, cluster: str | None = None, team: str | None = None
    ) -> dict[str, int]:
        """Failures that ended in [since, until) and were fixed, by mitigation; those of a cluster or team if given.

        Resubmits requested by this service are left out: they are counted as such.
        """
        resubmitted = exists().where(
            requests.c.failure_id == applied_fixes.c.failure_id,
            requests.c.state == "done",
            applied_fixes.c.code == "M1",
        )
        wanted = {"cluster": cluster, "team": team}
        own = [failures.c[name] == value for name, value in wanted.items() if value is not None]
        found = self._connection.execute(
            select(applied_fixes.c.code, func.count().label("many"))
            .select_from(applied_fixes.join(failures, failures.c.id == applied_fixes.c.failure_id))
            .where(failures.c.ended_at >= utc(since), failures.c.ended_at < utc(until), ~resubmitted, *own)
            .group_by(applied_fixes.c.code)
        )
        return {row.code: row.many for row in found}

    def _latest(self, same: ColumnElement[bool], but: int) -> tuple[ReportedFix, str, str] | None:
        near = (
            select(failures.c.id, failures.c.cluster, failures.c.ended_at)
            .where(same)
            .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
            .limit(NEAR)
            .subquery("near")
        )
        row = self._connection.execute(
            select(applied_fixes, near.c.cluster, jobs.c.job_id)
            .select_from(
                near.join(applied_fixes, applied_fixes.c.failure_id == near.c.id).join(jobs, jobs.c.id == near.c.id)
            )
            .where(near.c.id != but)
            .order_by(near.c.ended_at.desc(), near.c.id.desc())
            .limit(1)
        ).first()
        return (
            None if row is None else (ReportedFix(row.failure_id, row.code, row.at, row.who), row.cluster, row.job_id)
        )


class AppliedFixRepository(AppliedFixReader):
    """Reads and writes applied fixes."""

    def report(self, failure_id: int, code: str | None, actor: str) -> None:
        """Store what fixed a failure, replacing an earlier report; None removes it."""
        if code is None:
            self._connection.execute(delete(applied_fixes).where(applied_fixes.c.failure_id == failure_id))
            return
        values = {"code": code, "at": utc(self._clock.now()), "who": clean(actor[:200])}
        writing = upsert(self._connection, applied_fixes).values({"failure_id": failure_id, **values})
        self._connection.execute(writing.on_conflict_do_update(index_elements=["failure_id"], set_=values))
