"""GET /incidents and /incidents/{id}: what many jobs failed over, what is held for it, and what to do about it."""

from typing import Annotated, get_args

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.incidents.records import IncidentKind
from service.web import automation_views as views
from service.web.auth import READ
from service.web.pages.automation_banner import message
from service.web.pages.forms import Deciding, Text, then
from service.web.pages.templating import render
from service.web.services import Given
from service.web.views import LONGEST_ID

router = APIRouter()
Id = Annotated[int, Path(ge=1, le=LONGEST_ID)]
KINDS: tuple[IncidentKind, ...] = get_args(IncidentKind)


@router.get("/incidents", dependencies=[READ])
def incidents(
    request: Request,
    services: Given,
    cluster: Text = None,
    cursor: Text = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    said: Text = None,
) -> HTMLResponse:
    """The open ones first, then all, newest first."""
    told = {
        "open": views.incidents(services, still_open=True, cluster=cluster or None, limit=100).items,
        "page": views.incidents(
            services, still_open=False, cluster=cluster or None, limit=limit, cursor=cursor or None
        ),
        "kinds": [kind for kind in KINDS if kind != "fingerprint"],
        "cluster": cluster or None,
        "cursor": cursor,
        "limit": limit if limit != 50 else None,  # noqa: PLR2004 - the default
        "message": message(said),
    }
    return render(request, "incidents.html", told)


@router.get("/incidents/{incident_id}", dependencies=[READ])
def incident(request: Request, services: Given, incident_id: Id, said: Text = None) -> HTMLResponse:
    """One incident."""
    found = views.incident(services, incident_id)
    told = {"detail": found, "incident": found.incident, "message": message(said)}
    return render(request, "incident.html", told)


@router.post("/incidents/open")
def open_incident(
    asked: Deciding,
    cluster: Annotated[str, Form(min_length=1, max_length=200)],
    kind: Annotated[IncidentKind, Form()],
    value: Annotated[str, Form(min_length=1, max_length=200)],
) -> RedirectResponse:
    """Open an incident manually."""
    opened = views.open_incident(asked.services, cluster.strip(), kind, value.strip(), asked.who, asked.comment)
    return then(f"/incidents/{opened.id}?said=opened")


@router.post("/incidents/{incident_id}/close")
def close(incident_id: Id, asked: Deciding) -> RedirectResponse:
    """Close it and let its jobs go."""
    views.close_incident(asked.services, incident_id, asked.who, asked.comment)
    return then(f"/incidents/{incident_id}?said=close")


@router.post("/incidents/{incident_id}/hold")
def hold(incident_id: Id, asked: Deciding) -> RedirectResponse:
    """No probe until a person says so."""
    views.hold_incident(asked.services, incident_id, asked.who, asked.comment)
    return then(f"/incidents/{incident_id}?said=hold_incident")


@router.post("/incidents/{incident_id}/release")
def release(incident_id: Id, asked: Deciding) -> RedirectResponse:
    """A probe next."""
    views.release_incident(asked.services, incident_id, asked.who, asked.comment)
    return then(f"/incidents/{incident_id}?said=release")
