"""GET /reports and /reports/{week}: the weekly quality report as page, PDF and Markdown."""

from hashlib import blake2b
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service import weeks
from service.reports import html, markdown, pdf
from service.web import views
from service.web.auth import READ
from service.web.pages.forms import ActForm, Text, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
Version = Annotated[int | None, Query(ge=1, le=1_000_000)]
RECENT = 8  # recent weeks listed even if unpublished


@router.get("/reports", dependencies=[READ])
def reports(request: Request, services: InjectedServices, cursor: Text = None) -> HTMLResponse:
    """The list of reports."""
    now = weeks.of(services.clock.now(), services.zone)
    context = {
        "page": views.reports(services, limit=50, cursor=cursor or None),
        "recent": [str(now.earlier(back)) for back in range(RECENT)],
        "this": str(now),
        "cursor": cursor,
    }
    return render(request, "reports.html", context)


@router.get("/reports/{week}.pdf", dependencies=[READ])
def report_pdf(services: InjectedServices, week: str, version: Version = None) -> Response:
    """The report as PDF."""
    report = services.reports.read(weeks.parse(week), version)
    now = services.clock.monotonic()
    printed = services.printed_reports.get(
        blake2b(repr(report).encode("utf-8", "replace")).digest(), lambda: pdf.render(report), now, cacheable=bool
    )
    return Response(printed, media_type="application/pdf", headers=_named(report.week, "pdf"))


@router.get("/reports/{week}.md", dependencies=[READ])
def report_markdown(services: InjectedServices, week: str, version: Version = None) -> Response:
    """The report as Markdown."""
    report = services.reports.read(weeks.parse(week), version)
    return Response(markdown.render(report), media_type="text/markdown", headers=_named(report.week, "md"))


@router.get("/reports/{week}", dependencies=[READ])
def report(request: Request, services: InjectedServices, week: str, version: Version = None) -> HTMLResponse:
    """The report of one week."""
    wanted = weeks.parse(week)
    found, versions = services.reports.read_with_versions(wanted, version)
    week_ended = services.clock.now() >= wanted.span(services.zone)[1]
    context = {
        **html.template_context(found),
        "week_ended": week_ended,
        "versions": versions,
        "earlier": str(wanted.earlier(1)),
        "requested_version": version,
    }
    return render(request, "report.html", context)


@router.post("/reports/{week}/publish")
def publish(form: ActForm, week: str) -> RedirectResponse:
    """Publish the report of a week."""
    made = form.services.reports.publish(weeks.parse(week), form.actor)
    return redirect(f"/reports/{made.week}")


def _named(week: str, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'inline; filename="faultline-{week}.{ending}"'}
