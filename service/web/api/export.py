"""GET /failures/export.csv and .json: streamed export of matching failures."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from service.failures.records import FailureSort
from service.web import export
from service.web.api.parameters import failure_query
from service.web.auth import OWN, Principal
from service.web.error_responses import answers
from service.web.security_events import record
from service.web.services import InjectedServices
from service.web.views import FailureQuery

router = APIRouter(tags=["failures"], dependencies=[OWN])


class CsvResponse(StreamingResponse):
    """A CSV file."""

    media_type = "text/csv"


class JsonResponse(StreamingResponse):
    """A JSON file."""

    media_type = "application/json"


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


@router.get("/failures/export.csv", response_class=CsvResponse, responses=answers(401, 403, 422, 503))
def get_failures_csv(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, OWN],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    sort: FailureSort = "-ended_at",
) -> StreamingResponse:
    """All matching failures (200,000 at most), one per line; values that look like formulas are exported as text."""
    record(services, "export", request, principal.name, "failures.csv")
    parts = export.pages(services, filters, sort)
    return CsvResponse(export.as_csv(parts), headers=_file("failures.csv"), media_type="text/csv; charset=utf-8")


_ARRAY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}}}
}


@router.get("/failures/export.json", response_class=JsonResponse, responses={**_ARRAY, **answers(401, 403, 422, 503)})
def get_failures_json(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, OWN],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    sort: FailureSort = "-ended_at",
) -> StreamingResponse:
    """All matching failures (200,000 at most), as one JSON array."""
    record(services, "export", request, principal.name, "failures.json")
    parts = export.pages(services, filters, sort)
    return JsonResponse(export.as_json(parts), headers=_file("failures.json"))
