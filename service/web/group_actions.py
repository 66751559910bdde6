"""From what a request asks to the use case's calls; pages and API share it."""

from collections.abc import Sequence

from service.errors import Conflict, FieldError, InvalidInput
from service.feedback.records import Labels
from service.feedback.service import FeedbackInput, FeedbackResult
from service.web.api.group_models import FeedbackGiven, FeedbackReceipt, GroupAction
from service.web.services import Services


def act(services: Services, group_ids: Sequence[int], actor: str, action: GroupAction) -> None:
    """Do to each of the groups what is action, all or nothing; some actions take one group only.

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
        services.group_counts()  # the page that follows shows what was moved
    else:
        raise Conflict(f"{action.action} is no action on one group")


def feedback_input(given: FeedbackGiven) -> FeedbackInput:
    """What was said, as the use case takes it."""
    return FeedbackInput(
        given.kind,
        Labels(given.side, given.cause, given.category, given.symptom, given.retry),
        given.note,
        given.model_shown,
        given.version,
        given.fixed_by or None,
    )


def feedback_receipt(taken: FeedbackResult) -> FeedbackReceipt:
    """What became of it, as the API tells it."""
    return FeedbackReceipt(
        failure_id=taken.failure_id,
        feedback_id=taken.feedback_id,
        version=taken.version,
        changed=taken.changed,
        label=taken.label,
    )
