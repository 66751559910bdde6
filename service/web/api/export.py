"""GET /failures/export.csv and .json: streamed export of matching failures."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from service.contracts.page import Page
from service.failures.records import FailureRow, FailureSort
from service.web import export
from service.web.api.parameters import failure_query
from service.web.auth import OWN, Principal
from service.web.error_responses import answers
from service.web.limits.caller_limits import CountedAnswer
from service.web.security_events import record
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter(tags=["failures"], dependencies=[OWN])


class ExportResponse(CountedAnswer, export.StreamedFile):
    """A file in portions."""

    def __init__(
        self,
        content: Iterator[bytes],
        ended: Callable[[], None],
        status_code: int = 200,  # named, since the framework reads the default from this signature
        **given: Any,
    ) -> None:
        super().__init__(content, status_code, **given)
        self.counts_until_its_end(ended)


class CsvResponse(ExportResponse):
    """A CSV file."""

    media_type = "text/csv"


class JsonResponse(ExportResponse):
    """A JSON file."""

    media_type = "application/json"


def _file(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def _started(
    request: Request, services: Services, principal: Principal, filters: FailureQuery, sort: FailureSort, name: str
) -> tuple[Iterator[Page[FailureRow]], Callable[[], None]]:
    """The pages of an export, and what to call when it has ended.

    Raises:
        TooManyRequests: other exports have to end first.
        InvalidInput: as `export.pages`.
    """
    services.action_limits.exports.check(principal.sender, "exports of yours in a minute")
    services.exports.begin(principal.sender)
    ended = partial(services.exports.end, principal.sender)
    try:
        record(services, "export", request, principal.name, name)
        return export.pages(services, filters, sort), ended
    except BaseException:
        ended()
        raise


@router.get("/failures/export.csv", response_class=CsvResponse, responses=answers(401, 403, 422, 429, 503))
def get_failures_csv(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, OWN],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    sort: FailureSort = "-ended_at",
) -> StreamingResponse:
    """All matching failures (200,000 at most), one per line; values that look like formulas are exported as text."""
    parts, ended = _started(request, services, principal, filters, sort, "failures.csv")
    kind = "text/csv; charset=utf-8"
    return CsvResponse(export.as_csv(parts), ended, headers=_file("failures.csv"), media_type=kind)


_ARRAY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "array", "items": {"type": "object"}}}}}
}


@router.get(
    "/failures/export.json", response_class=JsonResponse, responses={**_ARRAY, **answers(401, 403, 422, 429, 503)}
)
def get_failures_json(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, OWN],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    sort: FailureSort = "-ended_at",
) -> StreamingResponse:
    """All matching failures (200,000 at most), as one JSON array."""
    parts, ended = _started(request, services, principal, filters, sort, "failures.json")
    return JsonResponse(export.as_json(parts), ended, headers=_file("failures.json"))
