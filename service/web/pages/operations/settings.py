"""GET /settings: the effective settings, without secrets."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.web.auth import ADMIN, tokens_required
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter(dependencies=[ADMIN])


@router.get("/settings")
def settings(request: Request, services: InjectedServices) -> HTMLResponse:
    """The effective settings and the API tokens, without secrets."""
    with services.reading() as reading:
        tokens = reading.tokens.list()
    return render(
        request,
        "operations/settings.html",
        {"settings": services.settings, "tokens": tokens, "open": not tokens_required(services)},
    )
