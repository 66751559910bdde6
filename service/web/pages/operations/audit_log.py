"""GET /audit-log: who changed what, for administrators."""

import re
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.web.auth import ADMIN
from service.web.pages import display_names
from service.web.pages.forms import Text
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter(dependencies=[ADMIN])
ENTRIES = 50
_TAXONOMY = frozenset({"cause", "category", "symptom", "fixed_by"})  # fields that hold codes of the taxonomy
_PAGES = re.compile(r"(failure|group|incident)/(\d{1,18})")  # subjects that have a page of their own


@router.get("/audit-log")
def audit_log(request: Request, services: InjectedServices, subject: Text = None, cursor: Text = None) -> HTMLResponse:
    """One page of the audit log, of all subjects or of one, such as failure/12."""
    wanted = (subject or "").strip() or None
    with services.reading() as reading:
        page = reading.audit_log.page(limit=ENTRIES, cursor=cursor or None, subject=wanted)
    links = {one.id: page_of(one.subject) for one in page.items if wanted is None}
    context = {"page": page, "subject": wanted, "cursor": cursor, "links": links, "shown": shown}
    return render(request, "operations/audit_log.html", context)


def page_of(subject: str) -> str | None:
    """The address of the page of a subject; None if it has none."""
    found = _PAGES.fullmatch(subject)
    return f"/{found[1]}s/{found[2]}" if found else None


def shown(value: Any) -> str:
    """A recorded value as text: names and values of a mapping, else the value; taxonomy codes by their titles."""
    if isinstance(value, dict):
        named = {name: each for name, each in value.items() if each not in (None, "", [], {})}
        return ", ".join(f"{name.replace('_', ' ')} {_of(name, each)}" for name, each in named.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown(each) for each in value)
    return str(value)


def _of(name: str, value: Any) -> str:
    if name in _TAXONOMY and isinstance(value, str):
        return display_names.title(value)
    return shown(value)
