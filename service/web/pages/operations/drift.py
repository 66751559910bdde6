"""GET /model/drift: recent failures compared with earlier ones."""

from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.drift.records import DriftMeasure
from service.web.auth import READ
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()


@router.get("/model/drift", dependencies=[READ])
def drift(request: Request, services: InjectedServices) -> HTMLResponse:
    """The newest comparison."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            context = {"report": reading.drift.latest(), "measures": get_args(DriftMeasure)}
        return render(request, "operations/drift.html", context, services=snapshot)
