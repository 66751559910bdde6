"""Dispatch of group actions and feedback to their services, shared by pages and API."""

from collections.abc import Sequence

from service.errors import Conflict, FieldError, InvalidInput
from service.feedback.records import FeedbackInput, FeedbackResult, Labels
from service.web.api.group_models import FeedbackGiven, FeedbackReceipt, GroupAction
from service.web.services import Services


def act(services: Services, group_ids: Sequence[int], actor: str, action: GroupAction) -> None:
    """Apply an action to all groups or to none. Some actions accept one group only.

    Raises:
        NotFound, Conflict, InvalidInput: see `service.groups.service.GroupService`.
    """
    group_service = services.group_service
    if action.action == "resolve":
        group_service.resolve(group_ids, actor, action.fixed_by or None)
    elif action.action == "reopen":
        group_service.reopen(group_ids, actor)
    elif action.action == "mute":
        group_service.mute(
            group_ids, actor, until=action.until, failures=action.failures, users=action.users, for_me=action.for_me
        )
    elif action.action == "unmute_for_me":
        group_service.unmute_for_me(group_ids, actor)
    elif action.action == "assign":
        group_service.assign(group_ids, actor, action.to)
    elif action.action == "merge" and len(group_ids) > 1:
        group_service.merge(group_ids[0], group_ids[1:], actor)
    else:
        _one(services, group_ids, actor, action)


def _one(services: Services, group_ids: Sequence[int], actor: str, action: GroupAction) -> None:
    group_service = services.group_service
    if len(group_ids) != 1:
        raise InvalidInput("groups: expected one group", (FieldError("groups", "one group", str(len(group_ids))),))
    [group_id] = group_ids
    if action.action == "link":
        group_service.link(group_id, actor, action.ticket)
    elif action.action == "comment":
        group_service.comment(group_id, actor, action.text)
    elif action.action == "merge":
        group_service.merge(group_id, action.groups, actor)
    elif action.action == "take_out":
        group_service.take_out(group_id, action.fingerprint, actor)
    elif action.action == "split":
        group_service.split(group_id, action.field, action.value, actor)
        services.group_counts()  # the next page shows the moved failures
    else:
        raise Conflict(f"{action.action} is not an action on one group")


def feedback_input(given: FeedbackGiven) -> FeedbackInput:
    """The feedback of a request body, as input of the feedback service."""
    return FeedbackInput(
        given.kind,
        Labels(given.side, given.cause, given.category, given.symptom, given.retry),
        given.note,
        given.model_shown,
        given.version,
        given.fixed_by or None,
    )


def feedback_receipt(taken: FeedbackResult) -> FeedbackReceipt:
    """The result of feedback, as returned by the API."""
    return FeedbackReceipt(
        failure_id=taken.failure_id,
        feedback_id=taken.feedback_id,
        version=taken.version,
        changed=taken.changed,
        label=taken.label,
    )
