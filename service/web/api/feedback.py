"""Feedback on verdicts, the queue of disputed verdicts, weekly audits and saved views."""

from typing import Annotated

from fastapi import APIRouter, Path

from service import weeks
from service.feedback import label_export, label_queue
from service.feedback.label_queue import LabelQueue
from service.feedback.records import VOTES, FeedbackInput, Labels
from service.fixes import service as fix_service
from service.people.records import SavedView
from service.web import group_views, views
from service.web.api.parameters import Cursor, Id, Limit
from service.web.auth import ACT, ADMIN, OWN, READ, Principal
from service.web.error_responses import answers
from service.web.group_requests import (
    AuditAnswer,
    BulkFeedback,
    BulkFeedbackResult,
    FeedbackAnswer,
    FeedbackGiven,
    FeedbackReceipt,
    FixedBy,
    Protected,
    QueuePage,
    Saved,
    SavedViews,
    feedback_input,
    feedback_receipt,
)
from service.web.services import InjectedServices

router = APIRouter(tags=["feedback"])
Week = Annotated[str, Path(pattern=r"^[0-9]{4}-W[0-9]{2}$", description="an ISO week, as in 2026-W47")]


@router.get("/failures/{failure_id}/feedback", dependencies=[OWN], responses=answers(401, 403, 404, 422, 503))
def get_feedback(services: InjectedServices, failure_id: Id) -> FeedbackAnswer:
    """All feedback on one failure, and the resulting label."""
    views.failure(services, failure_id)
    with services.reading() as reading:
        return FeedbackAnswer(
            label=reading.feedback.label(failure_id),
            fixed_by=reading.applied_fixes.of(failure_id),
            items=list(reading.feedback.of(failure_id)),
        )


@router.post("/failures/{failure_id}/feedback", responses=answers(401, 403, 404, 409, 422, 429, 503))
def post_feedback(
    services: InjectedServices, principal: Annotated[Principal, OWN], failure_id: Id, given: FeedbackGiven
) -> FeedbackReceipt:
    """Confirm or correct a verdict (scope act), or vote on it: contest or agree (anybody who sees it, 30 an hour)."""
    if given.kind not in VOTES:
        principal.require("act")
    views.failure(services, failure_id)  # raises if it is not visible to the caller
    return feedback_receipt(services.feedback.add(failure_id, principal.name, feedback_input(given)))


@router.put("/failures/{failure_id}/fixed-by", responses=answers(401, 403, 404, 422, 503))
def put_fixed_by(
    services: InjectedServices, principal: Annotated[Principal, ACT], failure_id: Id, given: FixedBy
) -> FixedBy:
    """Record the fix of a failure; later advice on failures of this cause takes it into account."""
    fix_service.check(given.code, "code")
    fix_service.report(services.store, failure_id, principal.name, given.code)
    return given


@router.post("/feedback", responses=answers(401, 403, 409, 422, 503))
def post_feedback_of_many(
    services: InjectedServices, principal: Annotated[Principal, ACT], given: BulkFeedback
) -> BulkFeedbackResult:
    """The same feedback on up to 500 failures."""
    taken = services.feedback.add_to_many(given.failures, principal.name, feedback_input(given), given.versions)
    return BulkFeedbackResult(items=[feedback_receipt(one) for one in taken])


@router.get("/feedback", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_feedback_queue(services: InjectedServices, limit: Limit = 50, cursor: Cursor = None) -> QueuePage:
    """Failures with a disputed or contested verdict, latest first."""
    page = group_views.queue(services, limit=limit, cursor=cursor)
    return QueuePage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/label-queue", dependencies=[READ], responses=answers(401, 403, 503))
def get_label_queue(services: InjectedServices) -> LabelQueue:
    """What to label next: the groups from whose label the most is gained."""
    now = services.clock.now()
    with services.reading() as reading:
        return label_queue.queue(reading, now, weeks.of(now, services.zone).span(services.zone)[0])


@router.put("/failures/{failure_id}/golden", responses=answers(401, 403, 409, 422, 503))
def put_golden(
    services: InjectedServices, principal: Annotated[Principal, ADMIN], failure_id: Id, wanted: Protected
) -> Protected:
    """Add the label of a failure to the golden set, which later feedback does not change, or remove it."""
    label_export.protect(
        services.store, failure_id, golden=wanted.golden, actor=principal.name, has_login=principal.via != "open"
    )
    return wanted


@router.get("/audits/{week}", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_audit(services: InjectedServices, week: Week) -> AuditAnswer:
    """A week's random sample of failures, labelled before the verdict is shown."""
    with services.reading() as reading:
        return AuditAnswer(week=week, items=list(reading.audit_samples.audit(week)))


@router.post("/audits/{week}/{failure_id}", responses=answers(401, 403, 404, 409, 422, 503))
def post_audit(
    services: InjectedServices,
    principal: Annotated[Principal, ACT],
    week: Week,
    failure_id: Id,
    given: FeedbackGiven,
) -> FeedbackReceipt:
    """Label one failure of a weekly sample: side and cause without seeing the verdict, or kind `unsure`."""
    labels = Labels(given.side, given.cause, given.category, given.symptom, given.retry)
    word = FeedbackInput("unsure" if given.kind == "unsure" else "audit", labels, given.note)
    return feedback_receipt(services.feedback.audit(week, failure_id, principal.name, word))


@router.get("/views", responses=answers(401, 403, 503))
def get_views(services: InjectedServices, reader: Annotated[Principal, OWN]) -> SavedViews:
    """Your saved filters."""
    with services.reading() as reading:
        found = [view for page in ("/failures", "/groups") for view in reading.saved_views.of(reader.views_owner, page)]
    return SavedViews(items=[Saved.model_validate(view, from_attributes=True) for view in found])


@router.put("/views", responses=answers(401, 403, 422, 503))
def put_view(services: InjectedServices, reader: Annotated[Principal, OWN], view: Saved) -> Saved:
    """Save filters under a name; replaces filters of the same name."""
    with services.store.unit_of_work() as work:
        work.saved_views.save(reader.views_owner, SavedView(view.name, view.page, view.query))
    return view


@router.delete("/views/{name:path}", status_code=204, responses=answers(401, 403, 404, 422, 503))
def delete_view(
    services: InjectedServices,
    reader: Annotated[Principal, OWN],
    name: Annotated[str, Path(min_length=1, max_length=100)],
) -> None:
    """Delete saved filters; does nothing if the name does not exist."""
    with services.store.unit_of_work() as work:
        work.saved_views.remove(reader.views_owner, name)
