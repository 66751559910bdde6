"""Queries and actions of automation that pages and API share.

They call `services.automation` directly for what needs no check of the web, such as incidents and hooks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from service.automation.time_limits import OUTCOME_AGE
from service.errors import Forbidden
from service.incidents.records import Incident
from service.reports import intervals
from service.resubmissions.records import Demotion, Rate, Request, RequestState, Switch, TallyRow
from service.web import views
from service.web.auth import ActionRequest
from service.web.services import Services, Tallies

MANY = 5_000  # above this many resubmissions the counts are cached


@dataclass(frozen=True, slots=True)
class HeldStorm:
    """A key held by the retry-storm limit."""

    key: str
    held_since: datetime
    reason: str
    trial: bool


@dataclass(frozen=True, slots=True)
class Overview:
    """Kill switch, policy version, requests by state, held storms and outcomes of resubmissions.

    `rates_at`: when the outcomes were counted.
    """

    switch: Switch
    policy: str
    counts: Mapping[RequestState, int]
    storms: tuple[HeldStorm, ...]
    rates: tuple[Rate, ...]
    rates_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FailureAutomation:
    """Automation of one failure: requests (newest first), incidents, and the mark (hold, never) set by a person."""

    requests: tuple[Request, ...]
    incidents: tuple[Incident, ...]
    mark: tuple[str, str] | None

    @property
    def state_digest(self) -> str:
        """A digest of everything shown about automation; it changes when the page would change."""
        states = [
            (
                *(one.request_id, one.state, one.held_by, one.incident_id, one.leases, one.result, one.new_job_id),
                *(one.outcome, one.retracted),
            )
            for one in self.requests
        ]
        context = (self.mark and self.mark[:2], [(one.id, one.state) for one in self.incidents])
        return sha256(repr((states, context)).encode()).hexdigest()[:16]


def overview(services: Services, tallied: Tallies | None = None) -> Overview:
    """The data of the automation page except its lists; `tallied`: the outcomes of resubmissions, if wanted."""
    with services.reading() as reading:
        switch = reading.kill_switch.get()
        counts = reading.requests.count_by_state()
        held = reading.storms.held()
        demotions = () if tallied is None else reading.outcomes.demotions()
    demoted = {(one.cluster, one.cause, one.plan, one.policy): one for one in demotions}
    storms = tuple(HeldStorm(one.key, one.held_since, one.reason, one.trial is not None) for one in held.values())
    at, counted = (None, ()) if tallied is None else tallied
    outcome_rates = tuple(rate(row, demoted.get((row.cluster, row.cause, row.plan, row.policy))) for row in counted)
    return Overview(switch, services.automation.policy.version, counts, storms, outcome_rates, at)


def tallies(services: Services) -> Tallies:
    """Outcomes of resubmissions. Large counts are cached, so they are never part of a page's snapshot."""

    def count() -> Tallies:
        now = services.clock.now()
        with services.store.reading() as reading:
            return now, tuple(reading.outcomes.tallies(now - OUTCOME_AGE))

    def many(found: Tallies) -> bool:
        return sum(row.helped + row.failed + row.unknown + row.pending for row in found[1]) >= MANY

    return services.outcome_tallies.get("rates", count, services.clock.monotonic(), cacheable=many)


def rate(row: TallyRow, demotion: Demotion | None) -> Rate:
    """Counts with their success rate and its interval."""
    ended = intervals.share(row.helped, row.helped + row.failed)
    return Rate(
        cluster=row.cluster,
        cause=row.cause,
        plan=row.plan,
        policy=row.policy,
        helped=row.helped,
        failed=row.failed,
        unknown=row.unknown,
        pending=row.pending,
        rate=None if ended is None else ended.value,
        low=None if ended is None else ended.low,
        high=None if ended is None else ended.high,
        demoted_at=None if demotion is None else demotion.at,
    )


def failure_automation(services: Services, failure_id: int, cluster: str, job_id: str) -> FailureAutomation:
    """Automation of one failure, shadow mode included."""
    with services.reading() as reading:
        return FailureAutomation(
            tuple(reversed(reading.requests.of_failures([failure_id]))),
            tuple(reading.incidents.of_failure(failure_id)),
            reading.lineages.mark_on(cluster, job_id),
        )


def resubmit(services: Services, failure_id: int, actor: str, comment: str | None) -> Request:
    """Request a resubmission on behalf of a person.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
        Conflict: automation is stopped, a hook is executing the request, or it is done.
    """
    views.failure(services, failure_id)
    return services.automation.resubmit(failure_id, actor, comment)


def hold(services: Services, failure_id: int, actor: str, comment: str | None) -> list[Request]:
    """Hold a job on behalf of a person.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
        Conflict: a hook is executing a request of this job.
    """
    views.failure(services, failure_id)
    return services.automation.hold(failure_id, actor, comment)


def never(services: Services, failure_id: int, actor: str, comment: str | None) -> list[Request]:
    """Exclude a job from automatic resubmission on behalf of a person.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
    """
    views.failure(services, failure_id)
    return services.automation.never(failure_id, actor, comment)


def lift(services: Services, failure_id: int, actor: str) -> list[Request]:
    """Lift a hold or exclusion of a job on behalf of a person.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
    """
    views.failure(services, failure_id)
    return services.automation.lift(failure_id, actor)


def check_owner(action: ActionRequest, failure_id: int) -> None:
    """Check that the caller is an operator, or owns the job of a failure about which nobody else decided.

    Raises:
        NotFound: no such failure, or it is not visible to the caller.
        Forbidden: neither an operator nor the owner of the job, or somebody else held or excluded the job.
    """
    row = views.failure(action.services, failure_id).row
    if action.principal.may("act"):
        return
    if not action.principal.owns(row.cluster, row.user):
        raise Forbidden("only the owner of the job and operators decide whether it is resubmitted")
    mark = failure_automation(action.services, failure_id, row.cluster, row.job_id).mark
    if mark is not None and mark[1] != action.actor:
        raise Forbidden(f"{mark[1]} decided about this job: only an operator can change that")
