"""Rendering of templates. All values are escaped, and invisible characters are made visible."""

import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import datetime
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any, cast
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from classifiers.suspected_place import suspected_node as suspected_node_of
from service import formatting
from service.failures.records import FailureRow
from service.headlines.headline import OwnTitles, headline
from service.web.pages import display_names, navigation
from service.web.pages.navigation import automation_banner
from service.web.services import Services
from service.web.sessions import FORM_COOKIE, cookie, cookie_name, is_secure

# Of every page; pages with charts add their own. The first of each come from npm (deploy/frontend).
STYLES = ("vendor/bootstrap.min.css", "faultline.css", "pages.css")
SCRIPTS = ("vendor/htmx.min.js", "faultline.js")
# The labels of own signatures while a page is rendered: macros of lists see no context of a page.
_own_titles: ContextVar[OwnTitles | None] = ContextVar("own_titles", default=None)
NAMES_KEPT = 10_000  # clusters, nodes and the like, as parts of URLs: the map of nodes has two for each node


@cache
def environment() -> Environment:
    """The templates as installed."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader("service.web", "templates"), PackageLoader("service.reports", "templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=formatting.escape_invisible,
    )
    made.filters |= {
        "cut": formatting.truncate,
        "shorten": formatting.shorten,
        "whole_words": formatting.whole_words,
        "number": formatting.number,
        "significant": formatting.significant,
        "counted": formatting.counted,
        "gpu_hours": formatting.gpu_hours,
        "percent": formatting.percent,
        "sureness": formatting.confidence,
        "span": formatting.duration,
        "plain": formatting.strip_colour,
        "segment": segment,
        "path": path,
    }
    made.globals |= {
        "word": display_names.word,
        "navigation": navigation.navigation,
        "headline": headline_of_line,
        "headline_of": headline_of,
        "suspected_node": suspected_node,
        "title": display_names.title,
        "filter_value": display_names.filter_value,
        "definition": display_names.definition,
        "confidence": display_names.confidence,
        "query": query,
        "relative_time": formatting.relative_time,
        "version": version("faultline"),
        "static": static,
        "styles": [static(name) for name in STYLES],
        "scripts": [static(name) for name in SCRIPTS],
    }
    return made


def headline_of_line(line: str) -> str:
    """The headline of a group by its line; empty without one."""
    return headline(line, own=_own_titles.get())


def headline_of(row: FailureRow) -> str:
    """The headline of a failure in a list; the status where no line is known."""
    node = row.suspect_node if row.side == "hardware" and not row.abstained else None
    return headline(row.headline, node=node, own=_own_titles.get()) or display_names.word("status", row.status)


def suspected_node(row: FailureRow) -> str | None:
    """The node that pages name as suspected."""
    return suspected_node_of(row.suspect_node, row.side, abstained=row.abstained)


def compared_node(row: FailureRow) -> str | None:
    """The node whose other failures a page links to: the suspected one, or the only one unless the user is at fault."""
    only = row.nodes[0] if len(row.nodes) == 1 and row.side != "user" else None
    return suspected_node(row) or only


def names(request: Request, services: Services) -> Mapping[str, tuple[str, ...]]:
    """The clusters, queues and teams that forms offer; none to who may not see all jobs."""
    principal = getattr(request.state, "principal", None)
    if principal is None or principal.visible is not None or not principal.may("read"):
        return {}
    with services.reading() as reading:
        return reading.statistics.names()


@lru_cache(NAMES_KEPT)
def segment(text: str | int) -> str:
    """A text as one segment of a URL path."""
    return quote(str(text), safe="")


@lru_cache(NAMES_KEPT)
def path(text: str) -> str:
    """A text as the end of a URL path. Slashes are kept, unless browsers would resolve "." or ".." segments."""
    return quote(text, safe="" if {".", ".."} & set(text.split("/")) else "/")


def query(*parts: Mapping[str, Any], **changes: Any) -> str:
    """A query string of merged parts; later parts override earlier ones, and empty values are omitted."""
    merged: dict[str, Any] = {}
    for part in (*parts, changes):
        merged |= part
    given = {name: value for name, value in merged.items() if value not in (None, "")}
    return f"?{urlencode(given)}" if given else ""


@cache
def static(name: str) -> str:
    """The URL of a static file, which changes with its content."""
    return f"/static/{name}?v={content_version(name)}"


@lru_cache(1_000)
def content_version(name: str) -> str:
    """The version of an existing static file, which changes with its content."""
    return sha256(files("service.web").joinpath(f"static/{name}").read_bytes()).hexdigest()[:12]


def render(
    request: Request,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    services: Services | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Render a page. The first page sets a random cookie that forms repeat, against forged requests.

    With `services` the state of automation in the header comes from their snapshot, as the rest of the page does.
    """
    services = services or cast("Services", request.app.state.services)
    now, zone = services.clock.now(), services.zone
    form = cookie(request, FORM_COOKIE) or secrets.token_urlsafe(24)

    def when(at: datetime) -> str:
        return formatting.exact_time(at, zone)

    own = _own_titles.set(services.own_titles())
    try:
        content = (
            environment()
            .get_template(template)
            .render(
                {
                    **(context or {}),
                    "principal": getattr(request.state, "principal", None),
                    "form_token": form,
                    "path": request.url.path,
                    "parameters": dict(request.query_params),
                    "area": navigation.area(request.url.path),
                    "period": navigation.period(request.query_params),
                    "page_ranges": navigation.ranges_of(request.url.path),
                    "moment": lambda text: navigation.moment(text, zone),
                    "now": now,
                    "zone": services.timezone,
                    "when": when,
                    "ago": lambda at: formatting.time_ago(at, now),
                    "names": lambda: names(request, services),
                    "automation_banner": lambda: automation_banner(services),
                }
            )
        )
    finally:
        _own_titles.reset(own)
    response = HTMLResponse(content, status, headers)
    if not cookie(request, FORM_COOKIE):
        set_cookie(request, response, FORM_COOKIE, form)
    return response


def set_cookie(
    request: Request, response: HTMLResponse | Any, name: str, value: str, *, seconds: int | None = None
) -> None:
    """Set an HttpOnly cookie with SameSite=Strict."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=seconds,
        path="/",
        secure=is_secure(request) or request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
