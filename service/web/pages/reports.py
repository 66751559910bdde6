"""GET /reports and /reports/{week}: the weekly quality report as page, PDF and Markdown."""

import re
from hashlib import blake2b
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from service import weeks
from service.deliveries.config import ReportReceiver
from service.reports import html, markdown, pdf
from service.reports import scope as scopes
from service.reports.document import Report
from service.reports.records import Subscription
from service.reports.subscriptions import described
from service.statistics.records import Scope
from service.web import views
from service.web.auth import READ, Principal
from service.web.pages.forms import ActForm, Text, redirect
from service.web.pages.templating import query, render
from service.web.services import InjectedServices, Services

router = APIRouter()
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")  # in the name of a file
Version = Annotated[int | None, Query(ge=1, le=1_000_000)]


def report_scope(cluster: Text = None, team: Text = None) -> Scope:
    """The scope of a report, from the URL."""
    return scopes.scope_of(cluster, team)


ReportScope = Annotated[Scope, Depends(report_scope)]
SCOPED = 20  # published reports of clusters and teams on a page
RECENT = 8  # recent weeks listed even if unpublished


@router.get("/reports")
def reports(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    cursor: Text = None,
    scoped_cursor: Text = None,
    subscribed: Text = None,
    sent: Text = None,
) -> HTMLResponse:
    """The list of reports."""
    now = weeks.of(services.clock.now(), services.zone)
    with services.snapshot() as snapshot:
        context = {
            "page": views.reports(snapshot, limit=50, cursor=cursor or None),
            "recent": [str(now.earlier(back)) for back in range(RECENT)],
            "dates": lambda name: weeks.parse(name).dates(),
            "this": str(now),
            "cursor": cursor,
            "scoped": views.reports_of_scopes(snapshot, limit=SCOPED, cursor=scoped_cursor or None),
            "scoped_cursor": scoped_cursor,
            "scope_values": scopes.values,
            "scope_words": scopes.words,
            "subscriptions": [(one, described(one)) for one in views.subscriptions(snapshot, principal)],
            "notice": _subscribed(snapshot, principal, subscribed) or _sent(snapshot, principal, sent),
            "last": str(now.earlier(1)),
            "following": lambda name: str(weeks.parse(name).earlier(-1)),
            "receivers": _receivers(services, principal),
            "scope": {},
            "ask_scope": True,
        }
        return render(request, "reports.html", context, services=snapshot)


@router.get("/reports/{week}.pdf")
def report_pdf(
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    week: str,
    scope: ReportScope,
    version: Version = None,
) -> Response:
    """The report as PDF.

    Raises:
        TooManyRequests: other reports have to be printed first.
    """
    report = services.reports.read(weeks.parse(week), version, scope)

    def printed() -> bytes:
        with services.pdfs.one_of(principal.sender):
            return pdf.render(report)

    content = services.printed_reports.get(
        blake2b(repr(report).encode("utf-8", "replace")).digest(), printed, services.clock.monotonic(), cacheable=bool
    )
    return Response(content, media_type="application/pdf", headers=_named(report, "pdf"))


@router.get("/reports/{week}.md", dependencies=[READ])
def report_markdown(services: InjectedServices, week: str, scope: ReportScope, version: Version = None) -> Response:
    """The report as Markdown."""
    report = services.reports.read(weeks.parse(week), version, scope)
    return Response(markdown.render(report), media_type="text/markdown", headers=_named(report, "md"))


@router.get("/reports/{week}")
def report(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    week: str,
    scope: ReportScope,
    version: Version = None,
) -> HTMLResponse:
    """The report of one week."""
    wanted = weeks.parse(week)
    found, versions = services.reports.read_with_versions(wanted, version, scope)
    since, until = wanted.span(services.zone)
    week_ended = services.clock.now() >= until
    context = {
        **html.template_context(found),
        "week_ended": week_ended,
        "versions": versions,
        "earlier": str(wanted.earlier(1)),
        "later": str(wanted.earlier(-1)) if week_ended else None,
        "span": {"since": since.isoformat(), "until": until.isoformat() if week_ended else None},
        "requested_version": version,
        "scope": scopes.values(scope),
        "ask_scope": False,
        "receivers": _receivers(services, principal),
    }
    return render(request, "report.html", context)


@router.post("/reports/{week}/publish")
def publish(
    form: ActForm,
    week: str,
    cluster: Annotated[str, Form(max_length=200)] = "",
    team: Annotated[str, Form(max_length=200)] = "",
) -> RedirectResponse:
    """Publish the report of a week, of all jobs or of a scope."""
    scope = scopes.scope_of(cluster, team)
    made = form.services.reports.publish(weeks.parse(week), form.actor, scope)
    return redirect(f"/reports/{made.week}{query(scopes.values(scope))}")


def _named(report: Report, ending: str) -> dict[str, str]:
    name = "-".join(["faultline", *(_UNSAFE.sub("-", one) for one in report.scope.values()), report.week])
    return {"Content-Disposition": f'inline; filename="{name}.{ending}"'}


def _receivers(services: Services, principal: Principal) -> list[ReportReceiver]:
    """The endpoints that this caller may choose, those to a person first for persons; channels are for operators."""
    found = [one for one in services.report_receivers if one.personal or principal.may("act")]
    return sorted(found, key=lambda one: principal.account_name is not None and not one.personal)


def _subscribed(services: Services, principal: Principal, subscribed: str | None) -> str | None:
    """What the form before has done; subscriptions of others are not named."""
    if subscribed == "ended":
        return "Unsubscribed: the report is no longer sent."
    if subscribed == "before":
        return "This subscription exists already."
    found = _own(services, principal, subscribed)
    if found is None:
        return None
    first = weeks.of(services.clock.now(), services.zone)
    return (
        f"Subscribed: {described(found)}. The first report is that of week {first}, on the Monday after it. "
        "“Send the last report now”, below, does not wait for it."
    )


def _sent(services: Services, principal: Principal, sent: str | None) -> str | None:
    """Which report was sent to whom, after the button of a subscription."""
    found = _own(services, principal, sent)
    if found is None:
        return None
    week = weeks.of(services.clock.now(), services.zone).earlier(1)
    text = f"The report of week {week} is being sent to {described(found)}."
    receiver = services.subscriptions.receivers.get(found.endpoint)
    if receiver is not None and receiver.folder is not None and principal.may("admin"):
        text += f" The mail is a file in the folder {receiver.folder}."
    return text


def _own(services: Services, principal: Principal, number: str | None) -> Subscription | None:
    """A subscription that the caller sees."""
    return next((one for one in views.subscriptions(services, principal) if str(one.id) == number), None)
