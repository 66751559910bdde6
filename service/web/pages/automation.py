"""GET /automation: what is done by itself, how it ended, what would have been done; and the kill switch."""

from typing import Annotated, get_args

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.store.automation_records import RequestState
from service.web import automation_views as views
from service.web.auth import ACT, READ, Principal, check_form
from service.web.pages.failure import Id
from service.web.pages.forms import Text
from service.web.pages.standing import message
from service.web.pages.templating import render
from service.web.services import Given

router = APIRouter()
STATES: tuple[RequestState, ...] = get_args(RequestState)
FormToken = Annotated[str, Form(max_length=200)]
Comment = Annotated[str, Form(max_length=2_000)]


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
def stop(
    request: Request,
    services: Given,
    principal: Annotated[Principal, ACT],
    form_token: FormToken = "",
    reason: Comment = "",
) -> RedirectResponse:
    """Stop everything."""
    check_form(request, form_token)
    views.stop(services, principal.name, reason.strip()[:500] or None)
    return RedirectResponse("/automation?said=stopped", 303)


@router.post("/automation/start")
def start(
    request: Request, services: Given, principal: Annotated[Principal, ACT], form_token: FormToken = ""
) -> RedirectResponse:
    """Let it go on."""
    check_form(request, form_token)
    views.start(services, principal.name)
    return RedirectResponse("/automation?said=started", 303)


@router.post("/failures/{failure_id}/resubmit")
def resubmit(
    request: Request,
    services: Given,
    failure_id: Id,
    principal: Annotated[Principal, ACT],
    form_token: FormToken = "",
    comment: Comment = "",
) -> RedirectResponse:
    """Ask for a resubmit now."""
    check_form(request, form_token)
    views.resubmit(services, failure_id, principal.name, comment.strip() or None)
    return RedirectResponse(f"/failures/{failure_id}?done=resubmit#automation", 303)


@router.post("/failures/{failure_id}/hold")
def hold(
    request: Request,
    services: Given,
    failure_id: Id,
    principal: Annotated[Principal, ACT],
    form_token: FormToken = "",
    comment: Comment = "",
) -> RedirectResponse:
    """Hold this piece of work."""
    check_form(request, form_token)
    views.hold(services, failure_id, principal.name, comment.strip() or None)
    return RedirectResponse(f"/failures/{failure_id}?done=hold#automation", 303)


@router.post("/failures/{failure_id}/never")
def never(
    request: Request,
    services: Given,
    failure_id: Id,
    principal: Annotated[Principal, ACT],
    form_token: FormToken = "",
    comment: Comment = "",
) -> RedirectResponse:
    """Forbid this piece of work to automation."""
    check_form(request, form_token)
    views.never(services, failure_id, principal.name, comment.strip() or None)
    return RedirectResponse(f"/failures/{failure_id}?done=never#automation", 303)
