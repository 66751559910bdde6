"""GET /automation: what is done by itself, how it ended, what would have been done; and the kill switch."""

from typing import Annotated, get_args

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.requests.records import RequestState
from service.web import automation_views as views
from service.web.auth import READ
from service.web.pages.automation_banner import message
from service.web.pages.failure.page import Id
from service.web.pages.forms import Acting, Deciding, Text, then
from service.web.pages.templating import render
from service.web.services import Given

router = APIRouter()
STATES: tuple[RequestState, ...] = get_args(RequestState)


@router.get("/automation", dependencies=[READ])
def automation(
    request: Request,
    services: Given,
    state: Text = None,
    cluster: Text = None,
    cursor: Text = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    said: Text = None,
) -> HTMLResponse:
    """The switch, the figures, and one page of requests."""
    chosen = next((one for one in STATES if one == state), None)
    told = {
        "overview": views.overview(services),
        "page": views.requests(services, state=chosen, cluster=cluster or None, limit=limit, cursor=cursor or None),
        "state": chosen,
        "states": STATES,
        "extra": {"cluster": cluster or None, "limit": limit if limit != 50 else None},  # noqa: PLR2004 - the default
        "cursor": cursor,
        "message": message(said),
    }
    return render(request, "automation.html", told)


@router.post("/automation/stop")
def stop(asked: Acting, reason: Annotated[str, Form(max_length=2_000)] = "") -> RedirectResponse:
    """Stop everything."""
    views.stop(asked.services, asked.who, reason.strip()[:500] or None)
    return then("/automation?said=stopped")


@router.post("/automation/start")
def start(asked: Acting) -> RedirectResponse:
    """Let it go on."""
    views.start(asked.services, asked.who)
    return then("/automation?said=started")


@router.post("/failures/{failure_id}/resubmit")
def resubmit(failure_id: Id, asked: Deciding) -> RedirectResponse:
    """Ask for a resubmit now."""
    views.resubmit(asked.services, failure_id, asked.who, asked.comment)
    return then(f"/failures/{failure_id}?done=resubmit#automation")


@router.post("/failures/{failure_id}/hold")
def hold(failure_id: Id, asked: Deciding) -> RedirectResponse:
    """Hold this piece of work."""
    views.hold(asked.services, failure_id, asked.who, asked.comment)
    return then(f"/failures/{failure_id}?done=hold#automation")


@router.post("/failures/{failure_id}/never")
def never(failure_id: Id, asked: Deciding) -> RedirectResponse:
    """Forbid this piece of work to automation."""
    views.never(asked.services, failure_id, asked.who, asked.comment)
    return then(f"/failures/{failure_id}?done=never#automation")
