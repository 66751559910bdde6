"""GET /failures: the list of failures, with filters in the URL."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from service.contracts.page import Page
from service.failures.records import FailureSort
from service.people.records import SavedView
from service.web import views
from service.web.auth import OWN, Principal
from service.web.pages.failure import own_failures
from service.web.pages.feedback import JUDGED
from service.web.pages.forms import (
    DEFAULT_ROWS,
    RowLimit,
    Text,
    causes_by_side,
    failure_query,
    in_url,
    symptoms,
    wrong_times,
)
from service.web.pages.templating import query, render
from service.web.services import InjectedServices, Services
from service.web.views import FailureQuery

router = APIRouter()
SORTS: dict[FailureSort, str] = {
    "-ended_at": "newest first",
    "ended_at": "oldest first",
    "-gpu_hours_lost": "most GPU-hours lost first",
}
Many = Annotated[int, Query(ge=0, le=500)]
MORE_FILTERS = ("job", "cluster", "queue", "team", "user", "node")


@router.get("/failures")
def failures(
    request: Request,
    services: InjectedServices,
    reader: Annotated[Principal, OWN],
    filters: Annotated[FailureQuery, Depends(failure_query)],
    cursor: Text = None,
    sort: FailureSort = "-ended_at",
    limit: RowLimit = DEFAULT_ROWS,
    notice: Text = None,
    ticked: Literal["", "all"] = "",
    taken: Many = 0,
    left: Many = 0,
    judged: Annotated[str | None, Query(pattern=JUDGED)] = None,
) -> HTMLResponse:
    """One page of the list.

    `ticked`: select all rows; `taken`, `left`: counts of the last bulk feedback; `judged`: its failures, for an undo.
    """
    problems = wrong_times(services, filters)
    with services.snapshot() as snapshot:
        page = (
            Page((), None)
            if problems
            else views.failures(snapshot, filters, limit=limit, cursor=cursor or None, sort=sort)
        )
        shown_filters = in_url(filters)
        extra = {
            name: value
            for name, value in (("sort", sort), ("limit", limit))
            if value not in ("-ended_at", DEFAULT_ROWS)
        }
        asked_job = shown_filters.get("job")
        own_period = {"since": own_failures.SPAN} | shown_filters
        own = None
        if not reader.may("read") and set(shown_filters) <= {"since", "until"} and not problems and not cursor:
            own = own_failures.of_person(snapshot, FailureQuery({}, None, own_period["since"], filters.until))
        context = {
            "page": page,
            "ended": (
                views.job_ended(snapshot, asked_job, filters.values.get("cluster"))
                if asked_job and not page.items and not problems
                else ()
            ),
            "filters": shown_filters,
            "extra": extra,
            "sort": sort,
            "sorts": SORTS,
            "keep": query(shown_filters) or query(list="all"),
            "sort_link": lambda order: f"/failures{query(shown_filters, extra, sort=order)}",
            "cursor": cursor,
            "causes": causes_by_side(),
            "statuses": views.statuses(),
            "more": MORE_FILTERS,
            "facets": None if problems else views.facets(snapshot, filters),
            "problems": problems,
            "newest": newest(snapshot),
            "own": own,
            "own_period": own_period,
            "saved": saved(snapshot, reader.views_owner),
            "notice": notice,
            "taken": taken,
            "left": left,
            "judged": judged,
            "may_label": reader.may("act") and reader.visible is None,
            "ticked": bool(ticked),
            "symptoms": symptoms(),
        }
        return render(request, "failures.html", context, services=snapshot, status=422 if problems else 200)


def saved(services: Services, actor: str) -> tuple[SavedView, ...]:
    """The saved filters of a person for this list."""
    with services.reading() as reading:
        return reading.saved_views.of(actor, "/failures")


def newest(services: Services) -> int:
    """The id of the newest failure; live updates count from there."""
    with services.reading() as reading:
        return reading.failures.newest()
