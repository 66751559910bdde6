"""GET /deliveries: undelivered notifications, and resending them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.web import views
from service.web.api.parameters import Id
from service.web.auth import READ
from service.web.pages.forms import ActForm, Text, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
WAITING = 10  # messages shown that wait for an attempt


@router.get("/deliveries", dependencies=[READ])
def deliveries(request: Request, services: InjectedServices, cursor: Text = None, resent: Text = None) -> HTMLResponse:
    """Abandoned deliveries and the newest that wait, newest first."""
    now = services.clock.now()
    with services.snapshot() as snapshot:
        page, endpoints = views.deliveries(snapshot, cursor=cursor or None)
        waiting, _ = views.deliveries(snapshot, state="waiting", limit=WAITING)
        context = {
            "page": page,
            "waiting": waiting,
            "endpoints": endpoints,
            "pauses": {one.name: one.paused_until for one in endpoints if one.paused_until and one.paused_until > now},
            "cursor": cursor,
            "message": f"Message {resent} is due again." if (resent or "").isdigit() else None,
        }
        return render(request, "operations/deliveries.html", context, services=snapshot)


@router.post("/deliveries/{message_id}/{endpoint}/resend")
def resend(
    form: ActForm,
    message_id: Id,
    endpoint: Annotated[str, Path(max_length=100)],
) -> RedirectResponse:
    """Make a delivery due again, then show the list."""
    views.send_again(form.services, message_id, endpoint, form.actor)
    return redirect(f"/deliveries?resent={message_id}")
