"""GET /feedback/next: what to label next, one group at a time, by the keyboard alone if wanted."""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service import weeks
from service.feedback import label_queue
from service.feedback.records import FeedbackInput
from service.sql.types import HIGHEST_ID
from service.web import views
from service.web.auth import READ
from service.web.group_requests import FeedbackGiven, feedback_input, label_waits
from service.web.pages.failure.log_excerpt import excerpts
from service.web.pages.feedback import facts
from service.web.pages.forms import ActForm, Text, cause_choice, causes_by_side, redirect
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()


@router.get("/feedback/next", dependencies=[READ])
def next_label(
    request: Request,
    services: InjectedServices,
    notice: Text = None,
    group: Annotated[int | None, Query(ge=1, le=HIGHEST_ID)] = None,
) -> HTMLResponse:
    """The group whose label is worth most, with the logs of its newest failure, and those after it.

    `group`: the one that was labelled before, whose label can be undone.
    """
    now = services.clock.now()
    start = weeks.of(now, services.zone).span(services.zone)[0]
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            queue = label_queue.queue(reading, now, start)
            newest = reading.site_layers.newest()
        context: dict[str, Any] = {"queue": queue, "layer": newest, "causes": causes_by_side(), "notice": notice}
        context["labelled_group"] = group
        if queue.items:
            detail = views.failure(snapshot, queue.items[0].failure)
            shown, left_out = excerpts([(logs.attempt_id, logs.streams) for logs in detail.logs], (), end=30)
            event = detail.logs[0].event if detail.logs else {}
            context |= {"row": detail.row, "excerpts": shown, "left_out": left_out, "facts": facts(event)}
            context["open_first"] = True
        return render(request, "label_queue.html", context, services=snapshot)


@router.post("/feedback/next")
def label(
    form: ActForm,
    group: Annotated[int, Form(ge=1, le=HIGHEST_ID)],
    failure: Annotated[int, Form(ge=1, le=HIGHEST_ID)],
    cause: Annotated[str, Form(max_length=40)] = "",
    note: Annotated[str, Form(max_length=4_000)] = "",
    unsure: Annotated[str, Form(max_length=10)] = "",
) -> RedirectResponse:
    """Label the group, or record that the cause cannot be determined, and show the next one."""
    if unsure:
        form.services.feedback.add(failure, form.actor, FeedbackInput("unsure", note=note or None))
        return redirect("/feedback/next?notice=unsure")
    given = feedback_input(FeedbackGiven(kind="correct", **cause_choice(cause), note=note or None))
    waits = label_waits(form.services.feedback.add_to_group(group, form.actor, given))
    return redirect(f"/feedback/next?notice={'label_waits' if waits else 'labelled'}&group={group}")
