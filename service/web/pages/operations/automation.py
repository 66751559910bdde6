"""GET /automation: requests, outcomes, shadow mode and the kill switch."""

from dataclasses import replace
from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.resubmissions.records import OPEN_STATES, RequestState
from service.web import automation_views as views
from service.web.api.parameters import Id
from service.web.auth import READ
from service.web.pages.forms import (
    DEFAULT_ROWS,
    ActForm,
    CommentForm,
    OverviewScope,
    RowLimit,
    Text,
    UserForm,
    overview_scope,
    redirect,
    wrong_times,
)
from service.web.pages.navigation import message
from service.web.pages.operations import automation_funnel
from service.web.pages.templating import render
from service.web.services import InjectedServices
from service.web.views import FailureQuery, default_since, period

router = APIRouter()
STATES: tuple[RequestState, ...] = get_args(RequestState)


@router.get("/automation", dependencies=[READ])
def automation(
    request: Request,
    services: InjectedServices,
    scope: Annotated[OverviewScope, Depends(overview_scope)],
    state: Text = None,
    cursor: Text = None,
    limit: RowLimit = DEFAULT_ROWS,
    notice: Text = None,
) -> HTMLResponse:
    """Kill switch, figures of a period and one page of its requests; open requests are listed whatever their age."""
    problems = wrong_times(services, FailureQuery(since=scope.since, until=scope.until))
    if problems:
        scope = replace(scope, since=None, until=None)
    since = scope.since or default_since(services, scope.until, automation_funnel.DEFAULT_RANGE)
    chosen = next((one for one in STATES if one == state), None)
    tallies, (begin, funnel) = views.tallies(services), automation_funnel.read(services, since, scope.until)
    _, end = period(services, since, scope.until)
    with services.snapshot() as snapshot:
        overview = views.overview(snapshot, tallies)
        with snapshot.reading() as reading:
            page = reading.requests.page(
                state=chosen,
                cluster=scope.cluster,
                since=None if chosen in OPEN_STATES else begin,
                until=end if scope.until and chosen not in OPEN_STATES else None,
                limit=limit,
                cursor=cursor or None,
            )
        context = {
            "overview": overview,
            "found": automation_funnel.of_period(funnel, overview.rates),
            "begin": begin,
            "end": end,
            "problems": problems,
            "counts": {
                code: (overview.counts if code in OPEN_STATES else funnel.by_state).get(code, 0) for code in STATES
            },
            "page": page,
            "state": chosen,
            "states": STATES,
            "extra": {
                "since": scope.since,
                "until": scope.until,
                "cluster": scope.cluster,
                "limit": limit if limit != DEFAULT_ROWS else None,
            },
            "cursor": cursor,
            "message": message(notice),
        }
        status = 422 if problems else 200
        return render(request, "operations/automation.html", context, services=snapshot, status=status)


@router.post("/automation/stop")
def stop(form: ActForm, reason: Annotated[str, Form(max_length=2_000)] = "") -> RedirectResponse:
    """Stop all automatic action."""
    form.services.automation.set_stopped(stopped=True, actor=form.actor, reason=reason.strip()[:500] or None)
    return redirect("/automation?notice=stopped")


@router.post("/automation/start")
def start(form: ActForm) -> RedirectResponse:
    """Start automation again."""
    form.services.automation.set_stopped(stopped=False, actor=form.actor)
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
