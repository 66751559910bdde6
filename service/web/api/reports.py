"""GET /reports: the weekly quality reports, as published."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from service import weeks
from service.reports.records import Subscription
from service.reports.scope import scope_of
from service.web import views
from service.web.api.parameters import Cursor, Limit, RequestBody, Text
from service.web.auth import PUBLISH, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["reports"])
WeekName = Annotated[str, Path(pattern=r"^\d{4}-W\d{2}$", description=weeks.EXPECTED)]


class PublishedReport(BaseModel):
    """One published version of a week's report."""

    week: str
    version: int
    published_at: datetime
    by: str
    cluster: str | None = None
    team: str | None = None


class ReportsPage(BaseModel):
    """One page of the published reports."""

    items: list[PublishedReport]
    next_cursor: str | None


class ReportBody(BaseModel):
    """weekly-report/1: formatted figures, and raw values under `figures`."""

    model_config = ConfigDict(extra="allow", title="weekly-report/1")

    schema_: Literal["weekly-report/1"] = Field(alias="schema")
    week: str
    title: str
    sentences: list[str]
    figures: dict[str, float | int | None]
    version: int
    moved: list[str]
    scope: dict[str, str] = Field(default_factory=dict, description="`cluster` and `team` of a limited report")
    sections: list[dict[str, Any]]


@router.get("/reports", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_reports(
    services: InjectedServices,
    limit: Limit = 50,
    cursor: Cursor = None,
    cluster: Text = None,
    team: Text = None,
    scopes: Annotated[bool, Query(description="the reports of all clusters and teams instead of one scope")] = False,  # noqa: FBT002 - a query parameter
) -> ReportsPage:
    """Published reports of all jobs, newest week first; with `cluster` or `team` those of this scope alone."""
    if scopes:
        page = views.reports_of_scopes(services, limit=limit, cursor=cursor)
    else:
        page = views.reports(services, limit=limit, cursor=cursor, scope=scope_of(cluster, team))
    return ReportsPage(
        items=[
            PublishedReport(
                week=one.week,
                version=one.version,
                published_at=one.published_at,
                by=one.by,
                cluster=one.scope.cluster,
                team=one.scope.team,
            )
            for one in page.items
        ],
        next_cursor=page.next_cursor,
    )


@router.get("/reports/{week}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_report(
    services: InjectedServices,
    week: WeekName,
    version: Annotated[int | None, Query(ge=1, le=1_000_000, description="default: the newest")] = None,
    cluster: Text = None,
    team: Text = None,
) -> ReportBody:
    """The report of a week: the published version, or a draft from current data if none is published.

    With `cluster` or `team`: the report of these jobs alone, which has its own versions.
    """
    return ReportBody.model_validate(
        services.reports.read(weeks.parse(week), version, scope_of(cluster, team)).to_wire()
    )


@router.post("/reports/{week}:publish", responses=answers(401, 403, 409, 422, 503))
def publish_report(
    services: InjectedServices,
    principal: Annotated[Principal, PUBLISH],
    week: WeekName,
    cluster: Text = None,
    team: Text = None,
) -> ReportBody:
    """Publish the report of a finished week, of all jobs or of a scope; returns the last version if nothing changed."""
    made = services.reports.publish(weeks.parse(week), principal.name, scope_of(cluster, team))
    return ReportBody.model_validate(made.to_wire())


class NewSubscriptionBody(RequestBody):
    """Who receives the weekly report. `user`: for an endpoint that sends to individual people; default: the caller."""

    endpoint: str = Field(max_length=100, description="an endpoint of the delivery file")
    user: str | None = Field(default=None, max_length=64)
    cluster: str | None = Field(default=None, max_length=200)
    team: str | None = Field(default=None, max_length=200)


class SubscriptionBody(BaseModel):
    """A subscription; `last_week` is the newest week that was sent, or that was over before it began."""

    id: int
    endpoint: str
    user: str | None
    cluster: str | None
    team: str | None
    created_at: datetime | None
    by: str
    last_week: str


class SubscriptionsAnswer(BaseModel):
    """Subscriptions of the weekly report; always one page."""

    items: list[SubscriptionBody]
    next_cursor: None = None


class SentReport(BaseModel):
    """The week whose report is being sent."""

    week: str


@router.get("/report-subscriptions", responses=answers(401, 403, 422, 503))
def get_subscriptions(services: InjectedServices, principal: Annotated[Principal, READ]) -> SubscriptionsAnswer:
    """The subscriptions of the weekly report: the caller's own, or all for an operator."""
    return SubscriptionsAnswer(items=[_subscription(one) for one in views.subscriptions(services, principal)])


@router.post("/report-subscriptions", status_code=201, responses=answers(401, 403, 409, 422, 503))
def add_subscription(
    services: InjectedServices, principal: Annotated[Principal, READ], body: NewSubscriptionBody
) -> SubscriptionBody:
    """Subscribe the caller or, as an operator, a channel."""
    added = views.subscribe(services, principal, body.endpoint, body.user, body.cluster, body.team)
    return _subscription(added)


@router.delete("/report-subscriptions/{subscription_id}", status_code=204, responses=answers(401, 403, 404, 422, 503))
def end_subscription(
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    subscription_id: Annotated[int, Path(ge=1, le=2**62)],
) -> None:
    """End a subscription."""
    views.unsubscribe(services, principal, subscription_id)


@router.post("/report-subscriptions/{subscription_id}:send", responses=answers(401, 403, 404, 409, 422, 503))
def send_subscribed_report(
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    subscription_id: Annotated[int, Path(ge=1, le=2**62)],
) -> SentReport:
    """Send the report of the last complete week to one subscriber now, in addition to those of each Monday."""
    return SentReport(week=str(views.send_report(services, principal, subscription_id)))


def _subscription(one: Subscription) -> SubscriptionBody:
    return SubscriptionBody(
        id=one.id,
        endpoint=one.endpoint,
        user=one.recipient,
        cluster=one.scope.cluster,
        team=one.scope.team,
        created_at=one.created_at,
        by=one.created_by,
        last_week=one.last_week,
    )
