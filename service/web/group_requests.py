"""Requests about groups, feedback and labels: their models, and the calls of the services; shared by pages and API."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from service.errors import Conflict, FieldError, InvalidInput
from service.feedback.records import Audit, FeedbackInput, FeedbackResult, Label, Labels, StoredFeedback
from service.fixes.repository import ReportedFix
from service.groups.records import GroupDetail, GroupRow
from service.web.group_views import Queued
from service.web.services import Services

Action = Literal[
    "resolve", "reopen", "mute", "unmute_for_me", "assign", "link", "comment", "merge", "take_out", "split"
]
FailureId = Annotated[int, Field(ge=1, le=2**63 - 1)]


class GroupsPage(BaseModel):
    """One page of groups."""

    items: list[GroupRow]
    next_cursor: str | None


class GroupAnswer(BaseModel):
    """One group, why its failures belong together and why it is in its state."""

    group: GroupDetail
    why_together: list[str]
    why_state: str


class GroupLabelItem(BaseModel):
    """A label that a person gave to a group and nobody withdrew."""

    number: int = Field(description="with which it is withdrawn")
    at: datetime
    who: str
    cause: str
    failures: int = Field(description="the failures that it labelled")


class GroupLabels(BaseModel):
    """The labels of a group, the latest first; always one page."""

    items: list[GroupLabelItem]
    next_cursor: None = None


class WithdrawnLabel(BaseModel):
    """A withdrawn label of a group."""

    cause: str
    failures: int = Field(description="those whose verdict does not come from a later label")
    unchanged: int = Field(description="those that were judged again since then, are protected, or are gone")


class GroupAction(BaseModel):
    """An action on a group; `action` determines which other fields are used."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    fixed_by: str | None = Field(
        default=None, max_length=4, description="resolve: the mitigation that fixed it, M1 to M10"
    )
    until: AwareDatetime | None = Field(default=None, description="mute: end of the mute")
    failures: int | None = Field(default=None, ge=1, le=10**9, description="mute: number of further failures")
    users: int | None = Field(default=None, ge=1, le=10**9, description="mute: until this many more users are affected")
    for_me: bool = Field(default=False, description="mute: hide the group only for you")
    to: str | None = Field(default=None, max_length=200, description="assign: the assignee; null: nobody")
    ticket: str | None = Field(default=None, max_length=500, description="link: an http or https address")
    text: str = Field(default="", max_length=4_000, description="comment")
    groups: list[FailureId] = Field(default=[], max_length=50, description="merge: groups to merge into this one")
    fingerprint: str = Field(default="", max_length=200, description="take_out: the merged kind to remove")
    field: str = Field(default="", max_length=20, description="split: cluster, queue, team, user or node")
    value: str = Field(default="", max_length=200, description="split: value of the field in the failures to split off")


class FeedbackGiven(BaseModel):
    """Feedback on a verdict.

    `confirm`: it is right. `correct`: the given axes are right; the others follow from the cause or stay. `contest`,
    `agree`: a vote of the owner of the job, which is no label; a contest may name side and cause. `unsure`: the person
    cannot tell, which is no label. `category` and `symptom` may be "none".
    """

    model_config = ConfigDict(extra="forbid")

    kind: Literal["confirm", "correct", "contest", "agree", "unsure"]
    side: str | None = None
    cause: str | None = None
    category: str | None = None
    symptom: str | None = None
    retry: str | None = None
    note: str | None = Field(default=None, max_length=4_000)
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="the version that was reviewed; 409 if another one is current"
    )
    model_shown: bool = Field(default=True, description="whether the verdict was visible to the person")
    fixed_by: str | None = Field(
        default=None,
        max_length=4,
        description="with confirm or correct: the mitigation that fixed it, M1 to M10; none removes it",
    )


class BulkFeedback(FeedbackGiven):
    """The same feedback on many failures."""

    failures: list[FailureId] = Field(min_length=1, max_length=500)
    versions: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default=[],
        max_length=500,
        description="version of each failure as reviewed, same order; skipped if another is current",
    )


class FeedbackReceipt(BaseModel):
    """Result of feedback. `changed`: the verdict changed, and hooks are notified."""

    failure_id: int
    feedback_id: int
    version: int
    changed: bool
    label: Label


class BulkFeedbackResult(BaseModel):
    """Results of bulk feedback; removed failures and failures with another current version are omitted."""

    items: list[FeedbackReceipt]


class FixedBy(BaseModel):
    """The fix of a failure: one of the ten mitigations, M1 to M10; none removes it."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(max_length=4)


class FeedbackAnswer(BaseModel):
    """Feedback on a failure (oldest first), the resulting label and the recorded fix."""

    label: Label | None
    fixed_by: ReportedFix | None = None
    items: list[StoredFeedback]
    next_cursor: None = None


class QueuePage(BaseModel):
    """Failures whose label is disputed, contested or waits for a second person."""

    items: list[Queued]
    next_cursor: str | None


class AuditAnswer(BaseModel):
    """A random sample of a week. Verdicts are hidden to keep labels unbiased."""

    week: str
    items: list[Audit]
    next_cursor: None = None


class ImportAnswer(BaseModel):
    """Result of an import of labels; `waiting` of those taken wait for a second person."""

    taken: int
    waiting: int
    elsewhere: list[str]
    wrong: list[str]


class Saved(BaseModel):
    """Saved filters of a list."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]*$")
    page: Literal["/failures", "/groups"] = "/failures"
    query: str = Field(default="", max_length=2_000, description="the query string, without its question mark")


class SavedViews(BaseModel):
    """All saved filters of the caller; always one page."""

    items: list[Saved]
    next_cursor: None = None


class Protected(BaseModel):
    """Whether a label is part of the golden set."""

    model_config = ConfigDict(extra="forbid")

    golden: bool


def label_waits(given: Sequence[FeedbackResult]) -> bool:
    """Whether the label of a group changed no verdict because it waits for a second person."""
    return bool(given) and given[0].label.held is not None and not any(one.changed for one in given)


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
