"""GET /automation: requests, outcomes, shadow mode and the kill switch."""

from typing import Annotated, get_args

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.resubmissions.records import RequestState
from service.web import automation_views as views
from service.web.auth import READ
from service.web.pages.failure.page import Id
from service.web.pages.forms import DEFAULT_ROWS, ActForm, CommentForm, RowLimit, Text, UserForm, redirect
from service.web.pages.navigation import message
from service.web.pages.operations import automation_funnel
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
STATES: tuple[RequestState, ...] = get_args(RequestState)


@router.get("/automation", dependencies=[READ])
def automation(
    request: Request,
    services: InjectedServices,
    state: Text = None,
    cluster: Text = None,
    cursor: Text = None,
    limit: RowLimit = DEFAULT_ROWS,
    notice: Text = None,
) -> HTMLResponse:
    """Kill switch, figures and one page of requests."""
    chosen = next((one for one in STATES if one == state), None)
    tallies, counted = views.tallies(services), automation_funnel.read(services)
    with services.snapshot() as snapshot:
        overview = views.overview(snapshot, tallies)
        with snapshot.reading() as reading:
            page = reading.requests.page(state=chosen, cluster=cluster or None, limit=limit, cursor=cursor or None)
        context = {
            "overview": overview,
            "month": automation_funnel.month(*counted, overview.rates),
            "page": page,
            "state": chosen,
            "states": STATES,
            "extra": {"cluster": cluster or None, "limit": limit if limit != DEFAULT_ROWS else None},
            "cursor": cursor,
            "message": message(notice),
        }
        return render(request, "operations/automation.html", context, services=snapshot)


@router.post("/automation/stop")
def stop(form: ActForm, reason: Annotated[str, Form(max_length=2_000)] = "") -> RedirectResponse:
    """Stop all automatic action."""
    form.services.automation.set_stopped(stopped=True, by=form.actor, reason=reason.strip()[:500] or None)
    return redirect("/automation?notice=stopped")


@router.post("/automation/start")
def start(form: ActForm) -> RedirectResponse:
    """Start automation again."""
    form.services.automation.set_stopped(stopped=False, by=form.actor)
    return redirect("/automation?notice=started")


@router.post("/failures/{failure_id}/resubmit")
def resubmit(failure_id: Id, form: CommentForm) -> RedirectResponse:
    """Request a resubmission."""
    views.resubmit(form.services, failure_id, form.actor, form.comment)
    return redirect(f"/failures/{failure_id}?done=resubmit#automation")


@router.post("/failures/{failure_id}/hold")
def hold(failure_id: Id, form: CommentForm) -> RedirectResponse:
    """Hold the job of this failure."""
    views.hold(form.services, failure_id, form.actor, form.comment)
    return redirect(f"/failures/{failure_id}?done=hold#automation")


@router.post("/failures/{failure_id}/never")
def never(failure_id: Id, form: UserForm, comment: Annotated[str, Form(max_length=2_000)] = "") -> RedirectResponse:
    """Exclude the job of this failure from automatic resubmission; the owner of the job may do so too."""
    views.check_owner(form, failure_id)
    views.never(form.services, failure_id, form.actor, comment.strip() or None)
    return redirect(f"/failures/{failure_id}?done=never#automation")


@router.post("/failures/{failure_id}/lift")
def lift(failure_id: Id, form: UserForm) -> RedirectResponse:
    """Undo a hold, or allow automatic resubmission of the job again; owners undo only what they decided."""
    views.check_owner(form, failure_id)
    views.lift(form.services, failure_id, form.actor)
    return redirect(f"/failures/{failure_id}?done=lift#automation")
