"""GET /groups, /groups/{id}, and actions on groups."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from service.groups.records import GroupSort, GroupState
from service.web import group_views, views
from service.web.api.parameters import Cursor, GroupTexts, Id, Limit, group_filter
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.group_requests import (
    BulkFeedbackResult,
    FeedbackGiven,
    GroupAction,
    GroupAnswer,
    GroupLabelItem,
    GroupLabels,
    GroupsPage,
    WithdrawnLabel,
    act,
    feedback_input,
    feedback_receipt,
)
from service.web.services import InjectedServices, Services
from service.web.url_times import When
from service.web.views import FailureQuery

router = APIRouter(tags=["groups"])
FailedSince = Annotated[When | None, Query(description="a failure of the group ended at or after")]
FailedUntil = Annotated[When | None, Query(description="a failure of the group ended before")]


@router.get("/groups", responses=answers(401, 403, 422, 503))
def get_groups(
    services: InjectedServices,
    reader: Annotated[Principal, READ],
    texts: GroupTexts,
    state: GroupState | None = None,
    since: FailedSince = None,
    until: FailedUntil = None,
    novel: Annotated[bool, Query(description="only groups with an undecided verdict")] = False,  # noqa: FBT002 - a query parameter
    mine: Annotated[bool, Query(description="exclude groups that you muted for yourself")] = False,  # noqa: FBT002 - as above
    limit: Limit = 50,
    cursor: Cursor = None,
    sort: GroupSort = "-last_at",
) -> GroupsPage:
    """Groups of failures of one kind, latest failure first; pages by cursor."""
    filters = group_filter(texts, state, reader.name if mine else None, novel=novel)
    period = views.failure_filter(services, FailureQuery(since=since, until=until))
    filters = replace(filters, since=period.since, until=period.until)
    page = group_views.groups(services, filters, limit=limit, cursor=cursor, sort=sort)
    return GroupsPage(items=list(page.items), next_cursor=page.next_cursor)


@router.get("/groups/{group_id}", responses=answers(401, 403, 404, 422, 503))
def get_group(services: InjectedServices, reader: Annotated[Principal, READ], group_id: Id) -> GroupAnswer:
    """One group: its kinds, affected clusters, users and nodes, times and history."""
    return _answer(services, group_id, reader.name)


@router.post("/groups/{group_id}/actions", responses=answers(401, 403, 404, 409, 422, 503))
def post_group_action(
    services: InjectedServices, actor: Annotated[Principal, ACT], group_id: Id, action: GroupAction
) -> GroupAnswer:
    """Resolve, reopen, mute, assign, link, comment, merge, take out or split; returns the updated group."""
    act(services, [group_id], actor.name, action)
    return _answer(services, group_id, actor.name)


@router.post("/groups/{group_id}/feedback", responses=answers(401, 403, 404, 409, 422, 503))
def post_group_feedback(
    services: InjectedServices, actor: Annotated[Principal, ACT], group_id: Id, given: FeedbackGiven
) -> BulkFeedbackResult:
    """Give the same feedback on the newest failures of a group (500 at most) and on the group."""
    taken = services.feedback.add_to_group(group_id, actor.name, feedback_input(given))
    return BulkFeedbackResult(items=[feedback_receipt(one) for one in taken])


@router.get("/groups/{group_id}/labels", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_group_labels(services: InjectedServices, group_id: Id) -> GroupLabels:
    """The labels that people gave to a group, the latest first (20 at most), without withdrawn ones."""
    items = [
        GroupLabelItem(number=one.number, at=one.at, who=one.who, cause=one.cause, failures=len(one.judgements))
        for one in group_views.labels(services, group_id)
    ]
    return GroupLabels(items=items)


@router.post("/groups/{group_id}/labels/{number}:withdraw", responses=answers(401, 403, 404, 422, 503))
def post_withdraw_group_label(
    services: InjectedServices, actor: Annotated[Principal, ACT], group_id: Id, number: Id
) -> WithdrawnLabel:
    """Withdraw a label of a group, the latest or an earlier one; later labels, and verdicts from them, stay."""
    taken = services.feedback.withdraw_group_label(group_id, number, actor.name)
    return WithdrawnLabel(cause=taken.cause, failures=taken.failures, unchanged=taken.unchanged)


def _answer(services: Services, group_id: int, actor: str) -> GroupAnswer:
    detail = group_views.group(services, group_id, actor)
    return GroupAnswer(
        group=detail,
        why_together=list(
            group_views.why_together(
                detail, causes=views.facets(services, FailureQuery({"group": str(group_id)})).counts["cause"]
            )
        ),
        why_state=group_views.why_state(detail.row),
    )
