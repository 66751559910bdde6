"""GET /incidents and /incidents/{id}: incidents, the jobs they hold, and actions on them."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, get_args

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.incidents.records import Incident, IncidentKind
from service.web.api.parameters import Id
from service.web.auth import READ
from service.web.pages.forms import DEFAULT_ROWS, CommentForm, PeriodOfUrl, RowLimit, Text, redirect
from service.web.pages.navigation import message
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
OTHERS = 5  # incidents over the same resource
JOBS_SHOWN = 50
LEAST_AROUND = timedelta(hours=3)  # shown before and after an incident
_JOB = re.compile(r"\b(job )(\S+?)(?=:?(?:\s|$))")
KINDS: tuple[IncidentKind, ...] = get_args(IncidentKind)


@router.get("/incidents", dependencies=[READ])
def incidents(
    request: Request,
    services: InjectedServices,
    period: PeriodOfUrl,
    cluster: Text = None,
    cursor: Text = None,
    limit: RowLimit = DEFAULT_ROWS,
    notice: Text = None,
) -> HTMLResponse:
    """Open incidents, then closed ones that were open in the period, newest first."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            still_open = reading.incidents.page(still_open=True, cluster=cluster or None, limit=100)
            closed = reading.incidents.page(
                still_open=False,
                cluster=cluster or None,
                limit=limit,
                cursor=cursor or None,
                since=period.since,
                until=period.until,
            )
        context = {
            "open": still_open.items,
            "page": closed,
            "kinds": [kind for kind in KINDS if kind != "fingerprint"],
            "cluster": cluster or None,
            "cursor": cursor,
            "limit": limit if limit != DEFAULT_ROWS else None,
            "message": message(notice),
            "problems": period.problems,
            "limited": bool(period.texts) and not period.problems,
        }
        status = 422 if period.problems else 200
        return render(request, "incidents.html", context, services=snapshot, status=status)


@router.get("/incidents/{incident_id}", dependencies=[READ])
def incident(request: Request, services: InjectedServices, incident_id: Id, notice: Text = None) -> HTMLResponse:
    """One incident."""
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            found = reading.incidents.get(incident_id)
            rows = reading.failures.rows([job.failure_id for job in found.jobs[:JOBS_SHOWN]])
            gpu_hours_lost = reading.incidents.gpu_hours_lost(incident_id)
            same = [one for one in reading.incidents.over(found.incident.key, most=OTHERS + 1) if one.id != incident_id]
        context = {
            "detail": found,
            "incident": found.incident,
            "gpu_hours_lost": gpu_hours_lost,
            "overview_period": overview_period(found.incident, snapshot.clock.now()),
            "others": same[:OTHERS],
            "rows": rows,
            "parts_of": partial(parts_of, failures={job.job_id: job.failure_id for job in reversed(found.jobs)}),
            "shown": JOBS_SHOWN,
            "message": message(notice),
        }
        return render(request, "incident.html", context, services=snapshot)


def overview_period(incident: Incident, now: datetime) -> dict[str, str]:
    """The period of the overview that shows an incident between what was before and after it."""
    end = min(incident.closed_at or now, now)
    room = max((end - incident.opened_at) / 2, LEAST_AROUND)
    since, until = incident.opened_at - room, min(end + room, now)
    return {"since": since.isoformat(timespec="seconds"), "until": until.isoformat(timespec="seconds")}


def parts_of(text: str, failures: Mapping[str, int]) -> Iterator[tuple[str, int | None]]:
    """A text of the history in parts: job ids with the job's newest failure, and what is between them."""
    end = 0
    for found in _JOB.finditer(text):
        failure_id = failures.get(found[2])
        if failure_id is not None:
            yield text[end : found.start(2)], None
            yield found[2], failure_id
            end = found.end()
    yield text[end:], None


@router.post("/incidents/open")
def open_incident(
    form: CommentForm,
    cluster: Annotated[str, Form(min_length=1, max_length=200)],
    kind: Annotated[IncidentKind, Form()],
    value: Annotated[str, Form(min_length=1, max_length=200)],
) -> RedirectResponse:
    """Open an incident manually."""
    opened = form.services.automation.open_incident(cluster.strip(), kind, value.strip(), form.actor, form.comment)
    return redirect(f"/incidents/{opened.id}?notice=opened")


@router.post("/incidents/{incident_id}/close")
def close(incident_id: Id, form: CommentForm) -> RedirectResponse:
    """Close an incident and release its jobs."""
    form.services.automation.close_incident(incident_id, form.actor, form.comment)
    return redirect(f"/incidents/{incident_id}?notice=close")


@router.post("/incidents/{incident_id}/hold")
def hold(incident_id: Id, form: CommentForm) -> RedirectResponse:
    """Hold an incident: no probe until a person releases it."""
    form.services.automation.hold_incident(incident_id, form.actor, form.comment)
    return redirect(f"/incidents/{incident_id}?notice=hold_incident")


@router.post("/incidents/{incident_id}/release")
def release(incident_id: Id, form: CommentForm) -> RedirectResponse:
    """Release an incident: a probe job runs next."""
    form.services.automation.release_incident(incident_id, form.actor, form.comment)
    return redirect(f"/incidents/{incident_id}?notice=release")
