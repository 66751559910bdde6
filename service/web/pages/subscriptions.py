"""Subscriptions of the weekly report: one form to subscribe, buttons and a link to unsubscribe."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import Conflict
from service.reports.records import Subscription
from service.reports.subscriptions import described
from service.web import views
from service.web.auth import check_form
from service.web.pages.forms import FormToken, ReaderForm, redirect
from service.web.pages.templating import query, render
from service.web.services import InjectedServices

router = APIRouter()
Token = Annotated[str, Path(max_length=100)]
LINK = "an unsubscribe link"
_Name = Annotated[str, Form(max_length=200)]
_SubscriptionId = Annotated[int, Path(ge=1, le=2**62)]


@router.post("/reports/subscriptions")
def subscribe(
    form: ReaderForm, endpoint: _Name = "", user: _Name = "", cluster: _Name = "", team: _Name = ""
) -> RedirectResponse:
    """Subscribe a person or a channel, then show the subscriptions."""
    try:
        added = views.subscribe(form.services, form.principal, endpoint, user, cluster, team)
    except Conflict:
        return redirect("/reports?subscribed=before#subscriptions")
    return redirect(f"/reports{query(subscribed=added.id)}#subscriptions")


@router.post("/reports/subscriptions/{subscription_id}/end")
def end(form: ReaderForm, subscription_id: _SubscriptionId) -> RedirectResponse:
    """End a subscription, then show the others."""
    views.unsubscribe(form.services, form.principal, subscription_id)
    return redirect("/reports?subscribed=ended#subscriptions")


@router.post("/reports/subscriptions/{subscription_id}/send")
def send(form: ReaderForm, subscription_id: _SubscriptionId) -> RedirectResponse:
    """Send the last week's report to one subscriber now, then show the subscriptions."""
    views.send_report(form.services, form.principal, subscription_id)
    return redirect(f"/reports{query(sent=subscription_id)}#subscriptions")


@router.get("/unsubscribe/{token}")
def unsubscribe_form(request: Request, services: InjectedServices, token: Token) -> HTMLResponse:
    """The page of the link in a report. It changes nothing: mail programs open links to check them."""
    return _unsubscribe_page(request, services.subscriptions.with_token(token), ended=False)


@router.post("/unsubscribe/{token}")
def unsubscribe(request: Request, services: InjectedServices, token: Token, form_token: FormToken = "") -> HTMLResponse:
    """End the subscription of a link. Whoever has the link may do so without a login."""
    check_form(request, form_token)
    found = services.subscriptions.with_token(token)
    services.subscriptions.remove(found.id, LINK)
    return _unsubscribe_page(request, found, ended=True)


def _unsubscribe_page(request: Request, found: Subscription, *, ended: bool) -> HTMLResponse:
    return render(request, "unsubscribe.html", {"subscription": described(found), "ended": ended})
