"""GET /dead-letters: unreadable records, and resending them."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import Conflict
from service.web import resending, views
from service.web.api.parameters import Id
from service.web.auth import READ
from service.web.pages.forms import DEFAULT_ROWS, ActForm, RowLimit, Text, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
OUTCOMES = {
    "accepted": "it was read and stored.",
    "duplicate": "it was read; the same event is already stored.",
    "conflict": "it was read; another event with the same id is already stored and is kept.",
    "unreadable": "it still cannot be read. Only its redacted text is stored: send the original again.",
    "skipped": "it was read; it is not the end of a job.",
}


@router.get("/dead-letters", dependencies=[READ])
def dead_letters(
    request: Request,
    services: InjectedServices,
    cursor: Text = None,
    limit: RowLimit = DEFAULT_ROWS,
    resent: Text = None,
    outcome: Text = None,
) -> HTMLResponse:
    """One page of dead letters."""
    with services.snapshot() as snapshot:
        page = views.dead_letters(snapshot, limit=limit, cursor=cursor or None)
        result = OUTCOMES.get(outcome or "")
        context = {
            "page": page,
            "cursor": cursor,
            "limit": limit,
            "message": f"Dead letter {resent}: {result}" if result and (resent or "").isdigit() else None,
        }
        return render(request, "operations/dead_letters.html", context, services=snapshot)


@router.post("/dead-letters/{letter_id}/resend")
def resend(form: ActForm, letter_id: Id) -> RedirectResponse:
    """Resend a dead letter, then show the list."""
    try:
        outcome = resending.resend(form.services, letter_id, form.actor).outcome
    except Conflict:
        outcome = "unreadable"
    return redirect(f"/dead-letters?resent={letter_id}&outcome={outcome}")
