"""Queries about failures, jobs, statistics, deliveries, reports and their subscriptions, shared by pages and API."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from service import weeks
from service.contracts.event import JobCompletion, Status
from service.contracts.page import Page
from service.contracts.verdict import VerdictBody
from service.dead_letters.records import StoredDeadLetter
from service.deliveries.records import DeliveryState, EndpointState, StoredDelivery
from service.errors import FieldError, Forbidden, NotFound, damage_translated
from service.failures.records import FailureDetail, FailureFilter, FailureRow, FailureSort
from service.failures.repository.facets import FacetCounts
from service.failures.repository.index_scan import SORTED
from service.jobs.records import Attempt
from service.people.roles import sees
from service.reports.records import EVERYTHING, PublishedReport, Subscription
from service.reports.scope import scope_of
from service.statistics.records import ALL_JOBS, Health, Scope, Stats
from service.times import rfc3339
from service.web.auth import Principal
from service.web.services import Services
from service.web.url_times import instant
from service.weeks import Week

DEFAULT_RANGE = "24h"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Health of the pipeline. `lag`: records not yet stored, by topic; None if this process does not know."""

    lag: Mapping[str, int] | None
    health: Health


@dataclass(frozen=True, slots=True)
class Job:
    """A job with every stored attempt, oldest first."""

    cluster: str
    job_id: str
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class FailureQuery:
    """Filters of failures as given in the URL: texts by name, unresolved times."""

    values: Mapping[str, str] = field(default_factory=dict)
    abstained: bool | None = None
    since: str | None = None
    until: str | None = None

    @classmethod
    def of(
        cls, texts: Mapping[str, str | None], *, abstained: bool | None, since: str | None, until: str | None
    ) -> "FailureQuery":
        """The filters from the parameters of a URL: blank ones are ignored, like blank form fields."""
        return cls(given_texts(texts), abstained, since or None, until or None)


def given_texts(texts: Mapping[str, str | None]) -> dict[str, str]:
    """The filters that are set, by name, without spaces around them: blank ones are ignored, like blank form fields."""
    return {name: text.strip() for name, text in texts.items() if text and text.strip()}


def stats(
    services: Services,
    since: str | None = None,
    until: str | None = None,
    scope: Scope = ALL_JOBS,
) -> Stats:
    """Counts and rates of jobs that ended in a period (see `period`).

    Raises:
        InvalidInput: a time is invalid.
    """
    begin, end = period(services, since, until)
    with services.reading() as reading:
        return reading.statistics.stats(begin, end, scope)


def period(services: Services, since: str | None, until: str | None) -> tuple[datetime, datetime]:
    """The period [since, until), by default the 24 hours before `until`, which is now by default.

    Raises:
        InvalidInput: a time is invalid.
    """
    now = services.clock.now()
    end = now if until is None else instant(until, "until", now, services.zone)
    return instant(since or default_since(services, until), "since", now, services.zone), end


def default_since(services: Services, until: str | None, span: str = DEFAULT_RANGE) -> str:
    """The begin of a period that has none, as in a URL: `span` before its end.

    Raises:
        InvalidInput: `until` is invalid.
    """
    if until is None:
        return span
    end = instant(until, "until", services.clock.now(), services.zone)
    return rfc3339(instant(span, "since", end, services.zone))


def before(
    services: Services,
    stats: Stats,
    scope: Scope = ALL_JOBS,
) -> Stats | None:
    """The outcomes of the period of the same length just before; None if it has no finished job."""
    try:
        since = stats.since - (stats.until - stats.since)
    except OverflowError:
        return None
    with services.reading() as reading:
        found = reading.statistics.stats(since, stats.since, scope, "status")
    return found if found.finished else None


def pipeline(services: Services) -> Pipeline:
    """Health of the pipeline over the last 24 hours."""
    with services.reading() as reading:
        health = reading.statistics.health(services.clock.now() - timedelta(hours=24))
    return Pipeline(services.lag_by_topic(), health)


def failures(
    services: Services,
    failure_query: FailureQuery,
    *,
    limit: int = 50,
    cursor: str | None = None,
    sort: FailureSort = "-ended_at",
) -> Page[FailureRow]:
    """One page of failures.

    Raises:
        InvalidInput: a time, the limit, sort or cursor is invalid.
    """
    filters = failure_filter(services, failure_query)
    with services.reading() as reading:
        return reading.failures.page(filters, limit=limit, cursor=cursor, sort=sort)


def costliest(
    services: Services, failure_query: FailureQuery, span: tuple[datetime, datetime], scope: Scope, *, most: int
) -> tuple[FailureRow, ...]:
    """The failures that lost the most GPU-hours, most first: those of `failures` in this order, with less work.

    Args:
        services: the services of the page.
        failure_query: which failures; its filters are those of `scope`.
        span: the period of the query.
        scope: of the failures.
        most: the number of failures at most.

    Raises:
        InvalidInput: a time is invalid.
    """
    filters = failure_filter(services, failure_query)
    with services.reading() as reading:

        def of_span(begin: datetime, end: datetime) -> list[tuple[float, int]]:
            part = replace(filters, since=begin, until=end)
            found = reading.failures.page(part, limit=most, sort="-gpu_hours_lost").items
            return [(row.gpu_hours_lost, row.id) for row in found]

        ids = None
        now = services.clock.now()
        if filters.visible is None and filters.since is not None and (filters.until or now) - filters.since <= SORTED:
            later_too = filters.until is None
            ids = reading.statistics.costliest(*span, scope, most=most, of_span=of_span, later_too=later_too)
        if ids is None:
            return reading.failures.page(filters, limit=most, sort="-gpu_hours_lost").items
        rows = reading.failures.rows(ids)
        return tuple(rows[failure_id] for failure_id in ids)


def facets(services: Services, failure_query: FailureQuery) -> FacetCounts:
    """The most common values of each filter among the newest matching failures.

    Raises:
        InvalidInput: a time is invalid.
    """
    filters = failure_filter(services, failure_query)
    with services.reading() as reading:
        return reading.failures.facets(filters)


def failure_filter(services: Services, failure_query: FailureQuery) -> FailureFilter:
    """The filter for the store, limited to what the caller may see.

    Raises:
        InvalidInput: a time is invalid.
    """
    now, zone = services.clock.now(), services.zone
    named: dict[str, Any] = dict(failure_query.values)
    return FailureFilter(
        **named,
        abstained=failure_query.abstained,
        since=None if failure_query.since is None else instant(failure_query.since, "since", now, zone),
        until=None if failure_query.until is None else instant(failure_query.until, "until", now, zone),
        visible=services.viewer(),
    )


def failure(services: Services, failure_id: int) -> FailureDetail:
    """One failure with all stored details.

    Raises:
        DamagedData: its verdict or event has another form than those that are written.
        NotFound: no such failure, or it is not visible to the caller.
    """
    with services.reading() as reading:
        found = reading.failures.get(failure_id)
    row, viewer = found.row, services.viewer()
    if not sees(viewer, row.cluster, row.user, row.team):
        raise NotFound(f"no failure {failure_id}")
    with damage_translated():
        for version in found.versions:
            if version.body is not None:
                VerdictBody.model_validate(version.body)
        for logs in found.logs:
            if logs.event != {}:  # none was stored with logs that arrived without one
                JobCompletion.model_validate(logs.event)
    if viewer is None:
        return found
    # If a scheduler reuses a job id, another attempt may belong to another user.
    attempts = tuple(
        one for one in found.attempts if one.user in {None, row.user} or sees(viewer, one.cluster, one.user, one.team)
    )
    hidden = {one.id for one in found.attempts} - {one.id for one in attempts}
    return replace(found, attempts=attempts, logs=tuple(one for one in found.logs if one.attempt_id not in hidden))


def job(services: Services, cluster: str, job_id: str) -> Job:
    """The attempts of a job.

    Raises:
        NotFound: no attempt is stored.
    """
    with services.reading() as reading:
        attempts = reading.jobs.attempts(cluster, job_id)
    attempts = tuple(one for one in attempts if sees(services.viewer(), one.cluster, one.user, one.team))
    if not attempts:
        raise NotFound(
            f"no attempt of job {job_id} on cluster {cluster} is stored",
            (FieldError("job_id", "a job whose end was reported to this service", job_id[:80]),),
        )
    return Job(cluster, job_id, attempts)


def job_ended(services: Services, job_id: str, cluster: str | None = None) -> tuple[Attempt, ...]:
    """The attempts of the jobs with this id that the caller may see, failed or not, on any cluster or on one."""
    with services.reading() as reading:
        found = reading.jobs.attempts_anywhere(job_id)
    viewer = services.viewer()
    return tuple(
        one for one in found if cluster in {None, one.cluster} and sees(viewer, one.cluster, one.user, one.team)
    )


def dead_letters(services: Services, *, limit: int = 50, cursor: str | None = None) -> Page[StoredDeadLetter]:
    """Dead letters, newest first.

    Raises:
        InvalidInput: the limit or cursor is invalid.
    """
    with services.reading() as reading:
        return reading.dead_letters.page(limit=limit, cursor=cursor)


def statuses() -> tuple[str, ...]:
    """The statuses a failure can have."""
    return tuple(status.value for status in Status if status is not Status.SUCCEEDED)


def reports(
    services: Services, *, limit: int = 50, cursor: str | None = None, scope: Scope = EVERYTHING
) -> Page[PublishedReport]:
    """Published reports of all jobs or of a scope, newest week first."""
    before = str(weeks.parse(cursor)) if cursor else None
    with services.reading() as reading:
        found = reading.reports.list(limit=limit + 1, before=before, scope=scope)
    items = found[:limit]
    return Page(items, items[-1].week if len(found) > limit and items else None)


def reports_of_scopes(services: Services, *, limit: int = 50, cursor: str | None = None) -> Page[PublishedReport]:
    """Published reports of all scopes, newest week first.

    Raises:
        InvalidInput: the limit or the cursor is wrong.
    """
    with services.reading() as reading:
        return reading.reports.scoped(limit=limit, cursor=cursor)


def deliveries(
    services: Services, *, state: DeliveryState = "given_up", limit: int = 50, cursor: str | None = None
) -> tuple[Page[StoredDelivery], tuple[EndpointState, ...]]:
    """Deliveries in a state, newest first, and the state of each receiver.

    Raises:
        InvalidInput: the limit or cursor is invalid.
    """
    with services.reading() as reading:
        states = reading.endpoints.all()
        return reading.deliveries.page(state=state, limit=limit, cursor=cursor), tuple(states.values())


def send_again(services: Services, message_id: int, endpoint: str, actor: str) -> None:
    """Make an ended delivery due again for a person, also at an endpoint that was disabled or paused.

    Raises:
        NotFound: no such delivery, or it is still pending.
        TooManyRequests: it was sent again many times in the last hour.
    """
    limit, what = services.action_limits.deliveries, "attempts to send this delivery in an hour"
    with services.store.unit_of_work() as work:
        limit.count(work, f"{message_id}/{endpoint}", what)
        work.endpoints.enable(endpoint)
        work.deliveries.send_again(message_id, endpoint)
        work.audit_log.append(actor, "delivery.resent", f"delivery/{message_id}", after={"endpoint": endpoint})


def subscriptions(services: Services, principal: Principal) -> tuple[Subscription, ...]:
    """The subscriptions that a caller may end: its own, and those that an operator may end: all."""
    with services.reading() as reading:
        found = reading.report_subscriptions.all()
    return tuple(one for one in found if _may_end(one, principal))


def subscribe(
    services: Services, principal: Principal, endpoint: str, user: str | None, cluster: str | None, team: str | None
) -> Subscription:
    """Subscribe the caller, a channel, or (by an administrator) another person.

    Raises:
        InvalidInput: no such endpoint, user or scope.
        Conflict: there is such a subscription already.
        Forbidden: only operators subscribe channels, and only administrators subscribe other people.
    """
    receiver = services.subscriptions.receivers.get(endpoint)
    if receiver is not None and not receiver.personal:
        principal.require("act")
    name = (user or "").strip() or principal.name
    if receiver is not None and receiver.personal and name != principal.account_name and not principal.may("admin"):
        raise Forbidden("only an administrator subscribes another person")
    return services.subscriptions.add(endpoint, name, scope_of(cluster, team), principal.name)


def unsubscribe(services: Services, principal: Principal, subscription_id: int) -> Subscription:
    """End a subscription.

    Raises:
        NotFound: the caller has no such subscription.
    """
    mine = {one.id for one in subscriptions(services, principal)}
    return services.subscriptions.remove(subscription_id if subscription_id in mine else 0, principal.name)


def send_report(services: Services, principal: Principal, subscription_id: int) -> Week:
    """Send the report of the last complete week to a subscriber now; returns the week.

    Raises:
        NotFound: the caller has no such subscription.
        Conflict: its endpoint is not configured any more.
        TooManyRequests: the caller had many reports sent in the last hour.
    """
    mine = {one.id for one in subscriptions(services, principal)}
    number = subscription_id if subscription_id in mine else 0
    with services.store.unit_of_work() as work:  # before the report is made, which takes longer than to send it
        services.action_limits.reports.count(work, principal.sender, "reports sent by you in an hour")
    reports = services.reports
    return services.subscriptions.send(number, principal.name, lambda week, of: reports.read(week, scope=of))


def _may_end(one: Subscription, principal: Principal) -> bool:
    # By the account: a token may have the name of a person.
    return principal.may("act") or (one.recipient is not None and one.recipient == principal.account_name)
