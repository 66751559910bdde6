"""Feedback pages and forms: the queue of disputed verdicts, the weekly audit, feedback and saved views."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field, ValidationError

from service.errors import Conflict, FieldError, InvalidInput, NotFound
from service.feedback.records import VOTES, FeedbackInput, Labels
from service.fixes import service as fix_service
from service.people.records import SavedView
from service.web import group_views, views
from service.web.api.parameters import Id
from service.web.auth import ACT, READ
from service.web.group_requests import FeedbackGiven, Saved, feedback_input
from service.web.pages import display_names
from service.web.pages.failure.log_excerpt import excerpts
from service.web.pages.forms import (
    ActForm,
    Text,
    UserForm,
    categories,
    cause_choice,
    causes_by_side,
    redirect,
    redirect_to_list,
    symptoms,
)
from service.web.pages.templating import render
from service.web.services import InjectedServices

router = APIRouter()
Week = Annotated[str, Path(pattern=r"^[0-9]{4}-W[0-9]{2}$")]
# A selected failure: its id and the version of the verdict that was shown.
Ticked = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,17}\.[1-9][0-9]{0,8}$")]
Note = Annotated[str, Form(max_length=4_000)]
Code = Annotated[str, Form(max_length=40)]
JUDGED = r"^[1-9][0-9]{0,17}(\.[1-9][0-9]{0,17}){0,499}$"  # ids of failures


@router.get("/feedback", dependencies=[READ])
def queue(request: Request, services: InjectedServices, cursor: Text = None, notice: Text = None) -> HTMLResponse:
    """Verdicts to decide, and the weekly samples."""
    with services.snapshot() as snapshot:
        page = group_views.queue(snapshot, cursor=cursor or None)
        context = {
            "page": page,
            "cursor": cursor,
            "audits": group_views.audits(snapshot),
            "causes": causes_by_side(),
            "notice": notice,
        }
        return render(request, "feedback.html", context, services=snapshot)


@router.get("/feedback/audit/{week}/{failure_id}", dependencies=[ACT])
def audit(request: Request, services: InjectedServices, week: Week, failure_id: Id) -> HTMLResponse:
    """One failure of a weekly sample: its logs and job, without the verdict.

    Raises:
        NotFound: the failure is not in this sample.
    """
    with services.snapshot() as snapshot:
        with snapshot.reading() as reading:
            sample = {one.failure_id: one for one in reading.audit_samples.audit(week)}
        if failure_id not in sample:
            raise NotFound(f"failure {failure_id} is not in the sample of {week}")
        detail = views.failure(snapshot, failure_id)
        shown, left_out = excerpts([(logs.attempt_id, logs.streams) for logs in detail.logs], (), end=60)
        context = {
            "row": detail.row,
            "week": week,
            "done": sample[failure_id].feedback_id is not None,
            "excerpts": shown,
            "left_out": left_out,
            "facts": facts(detail.logs[0].event if detail.logs else {}),
            "causes": causes_by_side(),
            "categories": categories(),
            "symptoms": symptoms(),
        }
        return render(request, "audit.html", context, services=snapshot)


@router.post("/feedback/audit/{week}/{failure_id}")
def save_audit(
    form: ActForm,
    week: Week,
    failure_id: Id,
    cause: Code = "",
    category: Code = "",
    symptom: Code = "",
    note: Note = "",
    unsure: Code = "",
) -> RedirectResponse:
    """Save the audit label, or that the person cannot tell, then show the verdict."""
    side = next((side for side, entries in causes_by_side().items() if any(one.code == cause for one in entries)), None)
    labels = Labels(side, cause or None, category or None, symptom or None)
    given = FeedbackInput("unsure", note=note or None) if unsure else FeedbackInput("audit", labels, note or None)
    form.services.feedback.audit(week, failure_id, form.actor, given)
    return redirect(f"/failures/{failure_id}?notice=audit")


@router.post("/failures/{failure_id}/feedback")
def give_feedback(
    form: UserForm,
    failure_id: Id,
    kind: Annotated[Literal["confirm", "correct", "contest", "agree", "unsure"], Form()] = "contest",
    cause: Code = "",
    category: Code = "",
    symptom: Code = "",
    retry: Code = "",
    note: Note = "",
    version: Annotated[int | None, Form(ge=1, le=2**31 - 1)] = None,
    back: Annotated[Literal["", "/feedback"], Form()] = "",
) -> RedirectResponse:
    """Confirm or correct one verdict, say that its cause is unclear, or vote on it."""
    if kind not in VOTES:
        form.principal.require("act")
    views.failure(form.services, failure_id)  # raises if it is not visible to the caller
    given = FeedbackGiven(
        kind=kind,
        **({} if kind == "unsure" else cause_choice(cause)),  # the list sends its choice with each button
        category=category or None,
        symptom=symptom or None,
        retry=retry or None,
        note=note or None,
        version=version,
    )
    form.services.feedback.add(failure_id, form.actor, feedback_input(given))
    return redirect(f"{back or f'/failures/{failure_id}'}?notice={kind}")


@router.post("/failures/{failure_id}/feedback/undo")
def undo(form: ActForm, failure_id: Id) -> RedirectResponse:
    """Withdraw the caller's latest judgement; the verdict before it is current again."""
    views.failure(form.services, failure_id)  # raises if it is not visible to the caller
    form.services.feedback.undo(failure_id, form.actor)
    return redirect(f"/failures/{failure_id}?notice=undone")


@router.post("/failures/{failure_id}/fixed")
def record_fix(form: ActForm, failure_id: Id, fixed_by: Annotated[str, Form(max_length=10)]) -> RedirectResponse:
    """Record the fix of a failure."""
    fix_service.report(form.services.store, failure_id, form.actor, fixed_by)
    return redirect(f"/failures/{failure_id}?notice=fixed")


@router.post("/feedback")
def give_bulk_feedback(
    form: ActForm,
    kind: Annotated[Literal["confirm", "correct"], Form()] = "confirm",
    failure: Annotated[list[Ticked] | None, Form()] = None,
    cause: Code = "",
    symptom: Code = "",
    note: Note = "",
    back: Annotated[str, Form(max_length=2_000)] = "",
) -> RedirectResponse:
    """Give the same feedback on all selected failures whose verdict is still the one that was shown.

    Raises:
        InvalidInput: no failure is selected, or a correction has no label.
    """
    if not failure:
        raise InvalidInput("no failure is selected", (FieldError("failure", "one or more failures"),))
    right = kind == "confirm"
    labels = {} if right else {**cause_choice(cause), "symptom": symptom or None}
    feedback = feedback_input(FeedbackGiven(kind=kind, note=note or None, **labels))
    ticked = [tuple(int(part) for part in one.split(".")) for one in failure]
    taken = form.services.feedback.add_to_many(
        [number for number, _ in ticked], form.actor, feedback, [version for _, version in ticked]
    )
    counts = {"taken": len(taken), "left": len({*ticked}) - len(taken)}
    notice = urlencode({"notice": kind, **counts, "judged": ".".join(str(one.failure_id) for one in taken)})
    return redirect_to_list("/failures", back, notice)


@router.post("/feedback/undo")
def undo_bulk_feedback(
    form: ActForm,
    judged: Annotated[str, Form(pattern=JUDGED)],
    back: Annotated[str, Form(max_length=2_000)] = "",
) -> RedirectResponse:
    """Withdraw what the caller gave on many failures at once; those with a newer verdict keep it."""
    numbers = {int(one) for one in judged.split(".")}
    undone = 0
    for number in numbers:
        try:
            form.services.feedback.undo(number, form.actor)
        except (Conflict, NotFound):
            continue
        undone += 1
    notice = urlencode({"notice": "undone", "taken": undone, "left": len(numbers) - undone})
    return redirect_to_list("/failures", back, notice)


@router.post("/views")
def save(
    form: UserForm,
    name: Annotated[str, Form(max_length=200)] = "",
    query: Annotated[str, Form(max_length=2_000)] = "",
) -> RedirectResponse:
    """Save the filters of the failures list under a name."""
    try:
        view = Saved(name=name.strip(), query=query.lstrip("?"))
    except ValidationError:
        expected = "1 to 100 characters, none of them a control character"
        raise InvalidInput(f"name: expected {expected}", (FieldError("name", expected, name[:40]),)) from None
    with form.services.store.unit_of_work() as work:
        work.saved_views.save(form.principal.views_owner, SavedView(view.name, view.page, view.query))
    return redirect(f"/failures?{view.query}{'&' if view.query else ''}{urlencode({'notice': 'view'})}")


@router.post("/views/drop")
def drop(form: UserForm, name: Annotated[str, Form(max_length=200)] = "") -> RedirectResponse:
    """Delete saved filters."""
    with form.services.store.unit_of_work() as work:
        work.saved_views.remove(form.principal.views_owner, name)
    return redirect("/failures?notice=drop")


def facts(event: object) -> list[tuple[str, str]]:
    """What the scheduler reported about a job, for an audit without the verdict."""
    if not isinstance(event, dict):
        return []
    names = ("status", "exit_code", "signal", "scheduler", "reason", "message", "framework", "command", "image")
    facts = {name: str(event[name]) for name in names if event.get(name) is not None}
    if "status" in facts:
        facts["status"] = display_names.word("status", facts["status"])
    return [(name.replace("_", " "), text) for name, text in facts.items()]
