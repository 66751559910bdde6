"""Counts of the weekly report, derived from rows. Every query reads one period by the index on `ended_at`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Float,
    Row,
    String,
    and_,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
)

from service.contracts.event import FAILURE_STATUSES, Status
from service.failures.tables import failures, verdicts
from service.feedback.records import JUDGING
from service.feedback.tables import feedback
from service.groups.tables import group_fingerprints, groups
from service.jobs.tables import jobs
from service.reports.records import EVERYTHING, Amount
from service.reports.weekly_facts import GroupFacts
from service.sql import bulk
from service.sql.reader import Reader
from service.sql.types import clean, utc
from service.statistics.records import UNKNOWN, Scope
from service.statistics.repository.scope_conditions import in_scope
from service.times import EPOCH

Breakdown = Literal["cause", "category", "symptom"]
_STATUS = func.coalesce(failures.c.status, "")
_HOUR = timedelta(hours=1)
_LOST = failures.c.gpu_hours_lost


@dataclass(frozen=True, slots=True)
class PeriodCounts:
    """Counts over jobs that ended in a period."""

    finished: int
    failed: Amount
    by_side: Mapping[str, Amount]


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """Verdicts of a period: their number, and how many are abstained, revised, or corrected by people."""

    diagnosed: int
    abstained: int
    revised: int
    corrected: int
    confidence: float | None


class WeeklyCountReader(Reader):
    """Reads counts of jobs and failures in a week."""

    def counts(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> PeriodCounts:
        """Finished and failed jobs; the failed ones by side, "unknown" for abstained verdicts and jobs without one."""
        since, until = utc(since), utc(until)
        finished, failed = 0, Amount()
        for row in self._connection.execute(
            select(jobs.c.status, *_sums(jobs.c.gpu_hours_lost))
            .where(jobs.c.ended_at >= since, jobs.c.ended_at < until, jobs.c.counted, *in_scope(jobs, scope))
            .group_by(jobs.c.status)
        ):
            if row.status in FAILURE_STATUSES:
                failed = _plus(failed, row)
                finished += row.jobs
            elif row.status == Status.SUCCEEDED:
                finished += row.jobs
        side = case((failures.c.abstained, UNKNOWN), else_=failures.c.side)
        sides = {
            row.side: _sum(row)
            for row in self._connection.execute(
                select(side.label("side"), *_sums(_LOST))
                .where(*_failed(since, until, scope))
                .group_by(literal_column("1"))
            )
        }
        settled = [sides.get(key, Amount()) for key in sides]
        left = failed.failures - sum(one.failures for one in settled)
        if left > 0:
            unknown = sides.get(UNKNOWN, Amount())
            sides[UNKNOWN] = Amount(
                unknown.failures + left,
                unknown.gpu_hours + max(failed.gpu_hours - sum(one.gpu_hours for one in settled), 0.0),
                unknown.squares + max(failed.squares - sum(one.squares for one in settled), 0.0),
            )
        return PeriodCounts(finished, failed, sides)

    def known(self, scope: Scope, since: datetime, until: datetime) -> bool:
        """Whether a failure of a scope is stored, or a job of it ended in a period."""
        wanted = {"cluster": scope.cluster, "team": scope.team}
        # Plain conditions: the indexes on cluster and team find one failure at once.
        own = [failures.c[name] == clean(value) for name, value in wanted.items() if value is not None]
        if self._connection.execute(select(failures.c.id).where(*own).limit(1)).first() is not None:
            return True
        ended = (jobs.c.ended_at >= utc(since), jobs.c.ended_at < utc(until))
        return (
            self._connection.execute(select(jobs.c.id).where(*ended, *in_scope(jobs, scope)).limit(1)).first()
            is not None
        )

    def amounts(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> tuple[float, ...]:
        """The GPU-hours that each failed attempt of a period lost, without those that lost none."""
        return tuple(
            self._connection.execute(
                select(jobs.c.gpu_hours_lost).where(
                    jobs.c.ended_at >= utc(since),
                    jobs.c.ended_at < utc(until),
                    jobs.c.counted,
                    jobs.c.status.in_(FAILURE_STATUSES),
                    jobs.c.gpu_hours_lost > 0,
                    *in_scope(jobs, scope),
                )
            ).scalars()
        )

    def breakdown(
        self, since: datetime, until: datetime, by: Breakdown, scope: Scope = EVERYTHING
    ) -> dict[str, Amount]:
        """The failed jobs of a period by a column's code; abstained ones count under "unknown" for the cause."""
        column: ColumnElement[Any] = failures.c[by]
        if by == "cause":
            column = case((failures.c.abstained, UNKNOWN), else_=column)
        return {
            row.code: _sum(row)
            for row in self._connection.execute(
                select(column.label("code"), *_sums(_LOST))
                .where(*_failed(utc(since), utc(until), scope), failures.c[by].is_not(None))
                .group_by(literal_column("1"))
            )
        }

    def groups(
        self,
        since: datetime,
        until: datetime,
        scope: Scope = EVERYTHING,
        *,
        limit: int,
        category: Iterable[str] | None = None,
    ) -> tuple[GroupFacts, ...]:
        """The groups that lost most GPU-hours and those with most jobs, `limit` of each, most GPU-hours first.

        The scope limits the counts of the period. When a group was first and last seen is of all clusters and teams,
        so that a new group is one that was not seen before.
        """
        since, until = utc(since), utc(until)
        wanted = _failed(since, until, scope)
        if category is not None:
            wanted.append(failures.c.category.in_(tuple(category)))
        prints = group_fingerprints
        # Fingerprints that people merged are one group; one that is not in a group yet is a separate group.
        key = case((prints.c.group_id.is_(None), failures.c.fingerprint), else_=cast(prints.c.group_id, String))
        counted = (
            select(
                key.label("key"),
                *_sums(_LOST),
                func.count(failures.c.user_name.distinct()).label("users"),
                func.max(failures.c.id).label("newest"),
                func.max(failures.c.ended_at).label("newest_at"),
                func.max(prints.c.group_id).label("group_id"),
            )
            .select_from(failures.outerjoin(prints, prints.c.fingerprint == failures.c.fingerprint))
            .where(*wanted)
            .group_by(literal_column("1"))
            .subquery()
        )
        found: dict[str, Row[Any]] = {}
        for order in (counted.c.lost.desc(), counted.c.jobs.desc()):
            for row in self._connection.execute(select(counted).order_by(order, counted.c.newest).limit(limit)):
                found[row.key] = row
        return tuple(
            self._group(row, since, wanted)
            for row in sorted(found.values(), key=lambda row: (-row.lost, -row.jobs, row.newest))
        )

    def cells(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> Iterator[Row[Any]]:
        """The failures of a period by fingerprint, cluster, suspect node and category, with `jobs` and `lost`."""
        # The rule of classifiers.suspected_place.
        suspected = case((and_(~failures.c.abstained, failures.c.side != "user"), failures.c.suspect_node))
        keys = (failures.c.fingerprint, failures.c.cluster, suspected.label("suspect_node"), failures.c.category)
        counted = select(*keys, *_sums(_LOST)).where(*_failed(utc(since), utc(until), scope))
        # By position: an expression with parameters is another one to PostgreSQL.
        yield from self._connection.execute(counted.group_by(*(literal_column(str(n + 1)) for n in range(len(keys)))))

    def silent_hours(self, since: datetime, until: datetime, cluster: str | None = None) -> tuple[datetime, ...]:
        """The hours of a period in which no job ended; a team may be silent for hours, a cluster rarely."""
        since, until = utc(since), utc(until)
        hour = self._hour_of(jobs.c.ended_at)
        seen = set(
            self._connection.execute(
                select(hour)
                .where(jobs.c.ended_at >= since, jobs.c.ended_at < until, *in_scope(jobs, Scope(cluster)))
                .distinct()
            ).scalars()
        )
        first, last = -((EPOCH - since) // _HOUR), (until - EPOCH) // _HOUR
        return tuple(EPOCH + number * _HOUR for number in range(first, last) if number not in seen)

    def seconds_to_verdict(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> list[float]:
        """Seconds from each event's arrival to its first verdict, ascending."""
        rows = self._connection.execute(
            select(jobs.c.received_at, verdicts.c.at)
            .select_from(
                failures.join(verdicts, (verdicts.c.failure_id == failures.c.id) & (verdicts.c.version == 1)).join(
                    jobs, jobs.c.id == failures.c.id
                )
            )
            .where(failures.c.ended_at >= utc(since), failures.c.ended_at < utc(until), *in_scope(failures, scope))
        )
        return sorted(max((row.at - row.received_at).total_seconds(), 0.0) for row in rows)

    def trust(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> VerdictCounts:
        """Counts of the verdicts of a period.

        A verdict that people only confirmed, or whose correction was withdrawn, is neither corrected nor revised.
        """
        of_failure = and_(feedback.c.failure_id == failures.c.id, feedback.c.withdrawn_by.is_(None))
        other = or_(
            func.coalesce(feedback.c.side, feedback.c.said_side) != feedback.c.said_side,
            func.coalesce(feedback.c.cause, feedback.c.said_cause) != feedback.c.said_cause,
        )
        by_person = failures.c.source == "person"
        agreed = and_(
            by_person,
            exists().where(of_failure, feedback.c.kind.in_(("confirm", "audit", "import"))),
            ~exists().where(of_failure, or_(feedback.c.kind == "correct", and_(feedback.c.kind != "contest", other))),
        )
        # A confirmation stored another version; a judgement that was withdrawn stored one, and its withdrawal one more.
        taken_back = (
            select(func.count())
            .where(feedback.c.failure_id == failures.c.id, feedback.c.withdrawn_by.is_not(None))
            .where(feedback.c.kind.in_(JUDGING))
            .scalar_subquery()
        )
        first = case((agreed, 2), else_=1)
        again = and_(failures.c.version > first, failures.c.version > first + 2 * taken_back)
        row = self._connection.execute(
            select(
                func.count().label("diagnosed"),
                func.coalesce(func.sum(case((failures.c.abstained, 1), else_=0)), 0).label("abstained"),
                func.coalesce(func.sum(case((again, 1), else_=0)), 0).label("revised"),
                func.coalesce(func.sum(case((and_(by_person, ~agreed), 1), else_=0)), 0).label("corrected"),
                func.avg(case((~failures.c.abstained, failures.c.confidence))).label("confidence"),
            ).where(failures.c.ended_at >= utc(since), failures.c.ended_at < utc(until), *in_scope(failures, scope))
        ).one()
        return VerdictCounts(
            int(row.diagnosed), int(row.abstained), int(row.revised), int(row.corrected), row.confidence
        )

    def resubmitted(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> int:
        """Jobs that ended in a period and are resubmissions of an earlier one."""
        return int(
            self._connection.execute(
                select(func.count())
                .select_from(jobs)
                .where(
                    jobs.c.ended_at >= utc(since),
                    jobs.c.ended_at < utc(until),
                    jobs.c.counted,
                    jobs.c.resubmit_of.is_not(None),
                    *in_scope(jobs, scope),
                )
            ).scalar_one()
        )

    def _group(self, counted: Row[Any], since: datetime, wanted: Sequence[ColumnElement[bool]]) -> GroupFacts:
        newest = self._connection.execute(select(failures).where(failures.c.id == counted.newest)).one()
        members = {newest.fingerprint, *self._members(counted.group_id)}
        same = failures.c.fingerprint.in_(sorted(members))
        # One failure of many may have another verdict, by what its node reported: the most frequent one counts.
        label = self._connection.execute(
            select(failures.c.side, failures.c.cause, failures.c.abstained)
            .where(same, *wanted)
            .group_by(failures.c.side, failures.c.cause, failures.c.abstained)
            .order_by(func.count().desc(), func.max(failures.c.id).desc())
            .limit(1)
        ).one()
        state, resolved_at = self._state(counted.group_id)
        returned = resolved_at is not None and counted.newest_at > resolved_at
        first = self._connection.execute(
            select(failures.c.ended_at).where(same).order_by(failures.c.ended_at, failures.c.id).limit(1)
        ).scalar_one()
        before = self._connection.execute(
            select(failures.c.ended_at)
            .where(same, failures.c.ended_at < since)
            .order_by(failures.c.ended_at.desc(), failures.c.id.desc())
            .limit(1)
        ).scalar_one_or_none()
        return GroupFacts(
            fingerprint=newest.fingerprint,
            failure_id=newest.id,
            headline=newest.headline,
            side=UNKNOWN if label.abstained else label.side,
            cause=label.cause,
            amount=_sum(counted),
            users=counted.users,
            first_seen=first,
            last_before=before,
            merged=tuple(sorted(members - {newest.fingerprint})),
            resolved=state == "resolved" and not returned,
            returned=returned and before is not None,
        )

    def _members(self, group_id: int | None) -> list[str]:
        prints = group_fingerprints
        found = self._connection.execute(select(prints.c.fingerprint).where(prints.c.group_id == group_id))
        return list(found.scalars())

    def _state(self, group_id: int | None) -> tuple[str | None, datetime | None]:
        row = self._connection.execute(
            select(groups.c.state, groups.c.resolved_at).where(groups.c.id == group_id)
        ).one_or_none()
        return (None, None) if row is None else (row.state, row.resolved_at)

    def _hour_of(self, at: ColumnElement[datetime]) -> ColumnElement[int]:
        if bulk.is_postgres(self._connection):
            return cast(func.floor(cast(func.extract("epoch", at), Float) / 3600), BigInteger)
        return cast(func.strftime("%s", at), BigInteger) // 3600


def _sums(lost: ColumnElement[float]) -> tuple[ColumnElement[Any], ...]:
    return (
        func.count().label("jobs"),
        func.coalesce(func.sum(lost), 0.0).label("lost"),
        func.coalesce(func.sum(lost * lost), 0.0).label("squares"),
    )


def _sum(row: Row[Any]) -> Amount:
    return Amount(row.jobs, row.lost, row.squares)


def _plus(one: Amount, row: Row[Any]) -> Amount:
    return Amount(one.failures + row.jobs, one.gpu_hours + row.lost, one.squares + row.squares)


def _failed(since: datetime, until: datetime, scope: Scope) -> list[ColumnElement[bool]]:
    return [
        failures.c.ended_at >= since,
        failures.c.ended_at < until,
        failures.c.counted,
        _STATUS.in_(FAILURE_STATUSES),
        *in_scope(failures, scope),
    ]
