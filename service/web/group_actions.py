"""From what a request asks to the use case's calls; pages and API share it."""

from collections.abc import Sequence

from service.errors import Conflict, FieldError, InvalidInput
from service.feedback.records import Labels
from service.feedback.service import FeedbackInput, FeedbackResult
from service.web.api.group_models import FeedbackGiven, FeedbackTaken, GroupAction
from service.web.services import Services


def act(services: Services, group_ids: Sequence[int], who: str, asked: GroupAction) -> None:
    """Do to each of the groups what is asked, all or nothing; some actions take one group only.

    Raises:
        NotFound, Conflict, InvalidInput: see `service.groups.service.GroupService`.
    """
    desk = services.desk
    if asked.action == "resolve":
        desk.resolve(group_ids, who, asked.fixed_by or None)
    elif asked.action == "reopen":
        desk.reopen(group_ids, who)
    elif asked.action == "mute":
        desk.mute(group_ids, who, until=asked.until, failures=asked.failures, users=asked.users, for_me=asked.for_me)
    elif asked.action == "unmute_for_me":
        desk.unmute_for_me(group_ids, who)
    elif asked.action == "assign":
        desk.assign(group_ids, who, asked.to)
    elif asked.action == "merge" and len(group_ids) > 1:
        desk.merge(group_ids[0], group_ids[1:], who)
    else:
        _one(services, group_ids, who, asked)


def _one(services: Services, group_ids: Sequence[int], who: str, asked: GroupAction) -> None:
    desk = services.desk
    if len(group_ids) != 1:
        raise InvalidInput("groups: expected one group", (FieldError("groups", "one group", str(len(group_ids))),))
    [group_id] = group_ids
    if asked.action == "link":
        desk.link(group_id, who, asked.ticket)
    elif asked.action == "comment":
        desk.comment(group_id, who, asked.text)
    elif asked.action == "merge":
        desk.merge(group_id, asked.groups, who)
    elif asked.action == "take_out":
        desk.take_out(group_id, asked.fingerprint, who)
    elif asked.action == "split":
        desk.split(group_id, asked.field, asked.value, who)
        services.fold()  # the page that follows shows what was moved
    else:
        raise Conflict(f"{asked.action} is no action on one group")


def word_of(given: FeedbackGiven) -> FeedbackInput:
    """What was said, as the use case takes it."""
    return FeedbackInput(
        given.kind,
        Labels(given.side, given.cause, given.category, given.symptom, given.retry),
        given.note,
        given.model_shown,
        given.version,
        given.fixed_by or None,
    )


def taken_of(taken: FeedbackResult) -> FeedbackTaken:
    """What became of it, as the API tells it."""
    return FeedbackTaken(
        failure_id=taken.failure_id,
        feedback_id=taken.feedback_id,
        version=taken.version,
        changed=taken.changed,
        label=taken.label,
    )
