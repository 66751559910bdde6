"""The page of the signatures in use, their state, and the failures that each one matched lately."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.web import signature_views
from service.web.auth import READ
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter(dependencies=[READ])


@router.get("/signatures")
def signatures(request: Request, services: InjectedServices) -> HTMLResponse:
    """The signatures in use, operators' own first."""
    found = signature_views.overview(services)
    folder = None if services.signatures is None else services.signatures.folder
    context = {"found": found, "folder": None if folder is None else str(folder)}
    return render(request, "signatures/page.html", context)
