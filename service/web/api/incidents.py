"""Incidents: many jobs over one shared thing; open by themselves, closed by a probe or by hand."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.incidents.records import Incident
from service.web import automation_views as views
from service.web.api.automation_models import IncidentAnswer, IncidentOpened, IncidentsPage
from service.web.api.parameters import Cursor, Decided, Limit, Text
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.services import Given
from service.web.views import LONGEST_ID

router = APIRouter(tags=["incidents"])
IncidentId = Annotated[int, Path(ge=1, le=LONGEST_ID)]


@router.get("/incidents", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_incidents(
    services: Given,
    open: Annotated[bool | None, Query(description="only those still open, or only closed ones")] = None,  # noqa: A002 - the parameter's public name
    cluster: Text = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> IncidentsPage:
    """Incidents, newest first."""
    page = views.incidents(services, still_open=open, cluster=cluster or None, limit=limit, cursor=cursor)
    return IncidentsPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/incidents/{incident_id}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_incident(services: Given, incident_id: IncidentId) -> IncidentAnswer:
    """One incident with its jobs and its history."""
    return IncidentAnswer.model_validate(views.incident(services, incident_id), from_attributes=True)


@router.post("/incidents", status_code=201, responses=answers(401, 403, 409, 422, 503))
def open_incident(services: Given, asked: IncidentOpened, principal: Principal = ACT) -> Incident:
    """Open an incident manually; failures over the resource are held from now on. 409: it is open already."""
    return views.open_incident(services, asked.cluster, asked.kind, asked.value, principal.name, comment=asked.comment)


@router.post("/incidents/{incident_id}:close", responses=answers(401, 403, 404, 409, 422, 503))
def close_incident(incident_id: IncidentId, asked: Decided) -> Incident:
    """The cause is mended: close it and let what it held go, paced."""
    return views.close_incident(asked.services, incident_id, asked.who, asked.comment)


@router.post("/incidents/{incident_id}:hold", responses=answers(401, 403, 404, 409, 422, 503))
def hold_incident(incident_id: IncidentId, asked: Decided) -> Incident:
    """Hold everything of it until a person says otherwise: no probe is sent."""
    return views.hold_incident(asked.services, incident_id, asked.who, asked.comment)


@router.post("/incidents/{incident_id}:release", responses=answers(401, 403, 404, 409, 422, 503))
def release_incident(incident_id: IncidentId, asked: Decided) -> Incident:
    """End a person's hold: a probe goes next, at once, and its outcome decides."""
    return views.release_incident(asked.services, incident_id, asked.who, asked.comment)
