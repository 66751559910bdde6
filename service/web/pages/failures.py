"""GET /failures: the list, with filters that live in the URL."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from classifiers import taxonomy
from service.store.records import FailureSort
from service.web import views
from service.web.auth import OWN
from service.web.pages.forms import Text, narrowed
from service.web.pages.templating import render
from service.web.services import Given
from service.web.views import Narrowed

router = APIRouter(dependencies=[OWN])
SORTS: dict[FailureSort, str] = {
    "-ended_at": "newest first",
    "ended_at": "oldest first",
    "-gpu_hours_lost": "most GPU-hours lost first",
}
MORE_FILTERS = ("cluster", "queue", "team", "user", "node")


@router.get("/failures")
def failures(
    request: Request,
    services: Given,
    filters: Annotated[Narrowed, Depends(narrowed)],
    cursor: Text = None,
    sort: FailureSort = "-ended_at",
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> HTMLResponse:
    """One page of the list."""
    page = views.failures(services, filters, limit=limit, cursor=cursor or None, sort=sort)
    asked: dict[str, str] = dict(filters.values)
    if filters.abstained is not None:
        asked["abstained"] = str(filters.abstained).lower()
    times = {"since": filters.since, "until": filters.until}
    asked |= {name: value for name, value in times.items() if value is not None}
    told = {
        "page": page,
        "asked": asked,
        "extra": {name: value for name, value in (("sort", sort), ("limit", limit)) if value not in ("-ended_at", 50)},
        "sort": sort,
        "sorts": SORTS,
        "cursor": cursor,
        "causes": by_side(),
        "statuses": views.statuses(),
        "more": MORE_FILTERS,
    }
    return render(request, "failures.html", told)


def by_side() -> dict[str, list[taxonomy.Entry]]:
    """The causes for a select, grouped by side."""
    axes = taxonomy.load()
    return {side: [entry for entry in axes.causes.values() if entry.extra["side"] == side] for side in axes.sides}
