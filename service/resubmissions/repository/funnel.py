"""How far automatic resubmissions came in a period, and what shadow mode left undone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, and_, case, func, or_, select

from service.contracts.advice import FAILED, HELPED
from service.jobs.tables import jobs
from service.resubmissions.records import RequestState
from service.resubmissions.repository.rescued import ELSEWHERE, rescuable, rescued
from service.resubmissions.tables import requests
from service.sql.reader import Reader
from service.sql.types import utc


@dataclass(frozen=True, slots=True)
class ShadowCount:
    """Requests of shadow mode for one cause and plan, and the GPU-hours that their failures lost.

    `rescuable`: the GPU-hours that they would rescue if every job succeeded.
    """

    cluster: str
    cause: str
    plan: str
    requests: int
    gpu_hours_lost: float
    rescuable: float = 0.0


@dataclass(frozen=True, slots=True)
class Funnel:
    """Requests of the policy made in a period, by how far they came; each stage is part of the one before.

    `rescued`: see `service.resubmissions.repository.rescued`; `wasted`: GPU-hours lost by resubmitted jobs that failed
    again. `by_state`: all requests made in the period, those of people too. `elsewhere`: requests whose job the
    scheduler or a person had started again before the hook acted; they are not `done`. `shadow_elsewhere`: requests of
    shadow mode whose job was started again before they would have expired; they are not in `shadow`.
    """

    advised: int
    opted_in: int
    requested: int
    done: int
    succeeded: int
    failed: int
    rescued: float
    wasted: float
    shadow: tuple[ShadowCount, ...]
    by_state: Mapping[RequestState, int] = field(default_factory=dict)
    elsewhere: int = 0
    shadow_elsewhere: int = 0


# A request in shadow mode whose job was started again by itself: with opt-in, its hook would have done nothing. A job
# that starts after the request would have expired is another one.
_LATER = jobs.alias("later")
_RAN_AGAIN = (
    select(_LATER.c.id)
    .where(
        _LATER.c.cluster == requests.c.cluster,
        _LATER.c.job_id == requests.c.job_id,
        _LATER.c.started_at > requests.c.started_at,
        _LATER.c.started_at < requests.c.expires_at,
    )
    .correlate(requests)
    .exists()
)


class FunnelReader(Reader):
    """Reads the funnel."""

    def read(self, since: datetime, until: datetime | None = None) -> Funnel:
        """The requests of the policy made since a time, and before another one if it is given."""
        in_period = requests.c.created_at >= utc(since)
        if until is not None:
            in_period = and_(in_period, requests.c.created_at < utc(until))
        made = and_(requests.c.origin == "policy", in_period)
        opted_in = requests.c.state != "shadow"
        # A request whose job ended before the hook answered is done without a result.
        unanswered = and_(requests.c.state == "done", requests.c.result.is_(None))
        done = and_(opted_in, or_(requests.c.result == "done", unanswered))
        elsewhere = and_(opted_in, requests.c.result == ELSEWHERE)
        requested = and_(opted_in, or_(requests.c.leases > 0, done, elsewhere))
        helped = and_(done, requests.c.outcome.in_(sorted(HELPED)))
        failed = and_(done, requests.c.outcome.in_(sorted(FAILED)))
        stages = (opted_in, requested, done, helped, failed, elsewhere)
        counts = self._connection.execute(
            select(func.count(), *(func.coalesce(func.sum(case((stage, 1), else_=0)), 0) for stage in stages)).where(
                made
            )
        ).one()
        wasted = self._connection.execute(
            select(func.coalesce(func.sum(jobs.c.gpu_hours_lost), 0.0))
            .select_from(requests.join(jobs, jobs.c.id == requests.c.outcome_attempt_id))
            .where(made, failed)
        ).scalar_one()
        advised, opted, sent, finished, helpful, failing, by_others = (int(count) for count in counts)
        shadow = self._shadow(and_(made, requests.c.state == "shadow", ~_RAN_AGAIN))
        return Funnel(
            advised=advised,
            opted_in=opted,
            requested=sent,
            done=finished,
            succeeded=helpful,
            failed=failing,
            rescued=rescued(self._connection, made, done),
            wasted=float(wasted),
            shadow=shadow,
            by_state=self._by_state(in_period),
            elsewhere=by_others,
            shadow_elsewhere=advised - opted - sum(one.requests for one in shadow),
        )

    def _by_state(self, in_period: ColumnElement[bool]) -> dict[RequestState, int]:
        rows = self._connection.execute(
            select(requests.c.state, func.count().label("many")).where(in_period).group_by(requests.c.state)
        )
        return {row.state: row.many for row in rows}

    def _shadow(self, in_shadow: ColumnElement[bool]) -> tuple[ShadowCount, ...]:
        """One query: which jobs ran again by themselves takes most of its time."""
        found = rescuable(self._connection, in_shadow)
        return tuple(ShadowCount(*key, one.requests, one.gpu_hours_lost, one.gpu_hours) for key, one in found.items())
