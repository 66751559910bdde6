"""Counts of the weekly report about actions and people: requests, outcomes, incidents, audits, contests, nodes."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, or_, select

from service.contracts.advice import FAILED
from service.failures.tables import failures
from service.feedback.tables import feedback
from service.incidents.tables import incident_jobs, incidents
from service.jobs.tables import jobs
from service.reports.records import EVERYTHING
from service.resubmissions.repository.rescued import ELSEWHERE, NOT_ELSEWHERE, rescued
from service.resubmissions.tables import requests
from service.sql.reader import Reader
from service.sql.types import utc
from service.statistics.records import Scope
from service.statistics.repository.scope_conditions import in_scope


@dataclass(frozen=True, slots=True)
class AutomationCounts:
    """Automatic requests made in a period by state, outcomes known in it by kind, and the GPU-hours behind these.

    Requests whose job the scheduler or a person had started again before the hook acted have a state of their own,
    `already_done`, and no outcome. `resubmissions`: runs behind the outcomes that are new jobs.
    `rescued`: see `service.resubmissions.repository.rescued`; `wasted`: lost by the resubmitted jobs that failed again.
    `retracted`: carried out on a verdict that was later retracted.
    """

    by_state: dict[str, int]
    by_outcome: dict[str, int]
    rescued: float
    wasted: float
    retracted: int
    resubmissions: int


@dataclass(frozen=True, slots=True)
class WeekIncident:
    """An incident that was open at some time of a period."""

    id: int
    title: str
    opened_at: datetime
    closed_at: datetime | None
    jobs: int


class WeeklyActionCountReader(Reader):
    """Reads counts of automatic actions in a week."""

    def automated(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> AutomationCounts:
        """Counts of automatic resubmission."""
        since, until = utc(since), utc(until)
        own = in_scope(requests, scope)
        made = (requests.c.created_at >= since, requests.c.created_at < until, *own)
        known = (requests.c.outcome_at >= since, requests.c.outcome_at < until, *own)
        states = self._connection.execute(
            select(
                requests.c.state,
                (requests.c.result == ELSEWHERE).label("elsewhere"),
                func.count().label("many"),
                func.coalesce(func.sum(case((requests.c.retracted, 1), else_=0)), 0).label("retracted"),
            )
            .where(*made)
            .group_by(requests.c.state, requests.c.result)
        ).all()
        by_state: Counter[str] = Counter()
        for row in states:
            by_state[ELSEWHERE if row.elsewhere else row.state] += row.many
        again = jobs.alias("again")
        ended = self._connection.execute(
            select(
                requests.c.outcome,
                func.count().label("many"),
                func.coalesce(func.sum(again.c.gpu_hours_lost), 0.0).label("lost"),
                func.count(again.c.resubmit_of).label("resubmissions"),
            )
            .select_from(requests.outerjoin(again, again.c.id == requests.c.outcome_attempt_id))
            .where(*known, NOT_ELSEWHERE)
            .group_by(requests.c.outcome)
        ).all()
        return AutomationCounts(
            dict(by_state),
            {row.outcome: row.many for row in ended},
            rescued(self._connection, *known),
            sum(row.lost for row in ended if row.outcome in FAILED),
            sum(int(row.retracted) for row in states if row.state == "done" and not row.elsewhere),
            sum(row.resubmissions for row in ended),
        )

    def incidents(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> tuple[WeekIncident, ...]:
        """Incidents that were open in a period, those with most jobs first; a job with many failures counts once.

        With a team in the scope: the incidents that failed jobs of that team, and the number of these jobs.
        """
        of_team = Scope(team=scope.team)
        distinct = (
            select(incident_jobs.c.incident_id, jobs.c.cluster, jobs.c.job_id, jobs.c.user_name)
            .join(jobs, jobs.c.id == incident_jobs.c.failure_id)
            .where(*in_scope(jobs, of_team))
            .distinct()
            .subquery()
        )
        counted = select(func.count()).where(distinct.c.incident_id == incidents.c.id).scalar_subquery()
        # Retention removes the jobs of old incidents; the stored number remains.
        many = (counted if scope.team else func.coalesce(func.nullif(counted, 0), incidents.c.jobs)).label("jobs")
        own = [] if scope.team is None else [counted > 0]
        found = self._connection.execute(
            select(incidents.c.id, incidents.c.title, incidents.c.opened_at, incidents.c.closed_at, many)
            .where(
                incidents.c.opened_at < utc(until),
                or_(incidents.c.closed_at.is_(None), incidents.c.closed_at >= utc(since)),
                *in_scope(incidents, Scope(scope.cluster)),
                *own,
            )
            .order_by(many.desc(), incidents.c.id)
        )
        return tuple(WeekIncident(row.id, row.title, row.opened_at, row.closed_at, row.jobs) for row in found)

    def contested(self, since: datetime, until: datetime, scope: Scope = EVERYTHING) -> int:
        """Failures that ended in a period and whose verdict was contested."""
        return int(
            self._connection.execute(
                select(func.count(feedback.c.failure_id.distinct()))
                .select_from(feedback.join(failures, failures.c.id == feedback.c.failure_id))
                .where(
                    feedback.c.kind == "contest",
                    failures.c.ended_at >= utc(since),
                    failures.c.ended_at < utc(until),
                    *in_scope(failures, scope),
                )
            ).scalar_one()
        )

    def lost_on(
        self, node: str, cluster: str, since: datetime, until: datetime, scope: Scope = EVERYTHING
    ) -> tuple[int, float]:
        """Failures attributed to a node in a period, and the GPU-hours they lost."""
        found = self._connection.execute(
            select(func.count(), func.coalesce(func.sum(failures.c.gpu_hours_lost), 0.0)).where(
                failures.c.cluster == cluster,
                failures.c.suspect_node == node,
                # The rule of classifiers.suspected_place.
                ~failures.c.abstained,
                failures.c.side != "user",
                failures.c.ended_at >= utc(since),
                failures.c.ended_at < utc(until),
                *in_scope(failures, scope),
            )
        ).one()
        return int(found[0]), float(found[1])
