"""GET /audit-log: who changed what, for administrators."""

import re
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.contracts.page import Page
from service.people.repository.audit_log import AuditEntry, AuditFilter
from service.web.api.people.audit_log import audit_filter
from service.web.auth import ADMIN
from service.web.pages import display_names
from service.web.pages.forms import Text, with_zone, wrong_times
from service.web.pages.templating import render
from service.web.services import InjectedServices
from service.web.views import FailureQuery, given_texts

router = APIRouter(dependencies=[ADMIN])
ENTRIES = 50
_TAXONOMY = frozenset({"cause", "category", "symptom", "fixed_by"})  # fields that hold codes of the taxonomy
_PAGES = re.compile(r"(failure|group|incident)/(\d{1,18})")  # subjects that have a page of their own


@router.get("/audit-log")
def audit_log(
    request: Request,
    services: InjectedServices,
    subject: Text = None,
    who: Text = None,
    what: Text = None,
    since: Text = None,
    until: Text = None,
    cursor: Text = None,
) -> HTMLResponse:
    """One page of the audit log; its filters are in the URL, such as subject=failure/12."""
    times = FailureQuery(since=with_zone(since, services.zone), until=with_zone(until, services.zone))
    problems = wrong_times(services, times)
    page: Page[AuditEntry] = Page((), None)
    wanted = AuditFilter()
    if not problems:
        wanted = audit_filter(services, subject=subject, who=who, what=what, since=times.since, until=times.until)
        with services.reading() as reading:
            page = reading.audit_log.page(limit=ENTRIES, cursor=cursor or None, wanted=wanted)
    given = {"subject": subject, "who": who, "what": what, "since": since, "until": until}
    context = {
        "page": page,
        "filters": given_texts(given),
        "kinds": display_names.table()["audit"],
        "problems": problems,
        "cursor": cursor,
        "links": {one.id: page_of(one.subject) for one in page.items if wanted.subject is None},
        "shown": shown,
    }
    return render(request, "operations/audit_log.html", context, status=422 if problems else 200)


def page_of(subject: str) -> str | None:
    """The address of the page of a subject; None if it has none."""
    found = _PAGES.fullmatch(subject)
    return f"/{found[1]}s/{found[2]}" if found else None


def shown(value: Any) -> str:
    """A recorded value as text: names and values of a mapping, else the value; taxonomy codes by their titles."""
    if isinstance(value, dict):
        named = {name: each for name, each in value.items() if each not in (None, "", [], {})}
        return ", ".join(
            shown(each) if name == "did" else f"{name.replace('_', ' ')} {_of(name, each)}"
            for name, each in named.items()
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(shown(each) for each in value)
    return str(value)


def _of(name: str, value: Any) -> str:
    if name in _TAXONOMY and isinstance(value, str):
        return display_names.title(value)
    return shown(value)
