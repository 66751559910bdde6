"""Incidents: many failures over one shared resource, opened automatically, closed by a probe or manually."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from service.contracts.event import Key
from service.incidents.records import Incident, IncidentJob, IncidentKind, IncidentNote, MemberCounts
from service.web.api.parameters import CommentedAction, Cursor, Id, Limit, RequestBody, Text
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices
from service.web.url_times import When
from service.web.views import FailureQuery, failure_filter

router = APIRouter(tags=["incidents"])
OpenSince = Annotated[When | None, Query(description="open at this time or later")]
OpenUntil = Annotated[When | None, Query(description="opened before")]


class IncidentRequest(RequestBody):
    """A new incident: a kind of shared resource and its name, such as file_system and /scratch."""

    cluster: Key
    kind: IncidentKind
    value: Key
    comment: Annotated[str, Field(max_length=2_000)] | None = None


class IncidentsPage(BaseModel):
    """One page of incidents, newest first."""

    items: list[Incident]
    next_cursor: str | None


class IncidentAnswer(BaseModel):
    """One incident with its failed attempts (`jobs`, the newest first), its history, and counts of all members."""

    incident: Incident
    jobs: list[IncidentJob]
    notes: list[IncidentNote]
    counts: MemberCounts


@router.get("/incidents", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_incidents(
    services: InjectedServices,
    open: Annotated[bool | None, Query(description="true: only open incidents; false: only closed ones")] = None,  # noqa: A002 - the parameter's public name
    cluster: Text = None,
    since: OpenSince = None,
    until: OpenUntil = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> IncidentsPage:
    """Incidents, newest first."""
    period = failure_filter(services, FailureQuery(since=since, until=until))
    with services.reading() as reading:
        page = reading.incidents.page(
            still_open=open,
            cluster=cluster or None,
            limit=limit,
            cursor=cursor,
            since=period.since,
            until=period.until,
        )
    return IncidentsPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/incidents/{incident_id}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_incident(services: InjectedServices, incident_id: Id) -> IncidentAnswer:
    """One incident with its jobs and its history."""
    with services.reading() as reading:
        return IncidentAnswer.model_validate(reading.incidents.get(incident_id), from_attributes=True)


@router.post("/incidents", status_code=201, responses=answers(401, 403, 409, 422, 503))
def open_incident(services: InjectedServices, body: IncidentRequest, principal: Principal = ACT) -> Incident:
    """Open an incident manually; failures over the resource are held from now on. 409: it is already open."""
    return services.automation.open_incident(body.cluster, body.kind, body.value, principal.name, body.comment)


@router.post("/incidents/{incident_id}:close", responses=answers(401, 403, 404, 409, 422, 503))
def close_incident(incident_id: Id, action: CommentedAction) -> Incident:
    """Close an incident whose cause is fixed; the requests it held are released gradually."""
    return action.services.automation.close_incident(incident_id, action.actor, action.comment)


@router.post("/incidents/{incident_id}:hold", responses=answers(401, 403, 404, 409, 422, 503))
def hold_incident(incident_id: Id, action: CommentedAction) -> Incident:
    """Hold all its requests until a person releases the incident: no probe is sent."""
    return action.services.automation.hold_incident(incident_id, action.actor, action.comment)


@router.post("/incidents/{incident_id}:release", responses=answers(401, 403, 404, 409, 422, 503))
def release_incident(incident_id: Id, action: CommentedAction) -> Incident:
    """End a manual hold: a probe job runs next, and its outcome decides."""
    return action.services.automation.release_incident(incident_id, action.actor, action.comment)
