"""The shapes of answers and requests about groups, feedback and labels."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from service.feedback.records import Audit, Label, StoredFeedback
from service.feedback.repository.applied_fixes import ReportedFix
from service.groups.records import GroupDetail, GroupRow
from service.web.group_views import Queued

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


class GroupAction(BaseModel):
    """What to do to a group; which further fields are read depends on `action`."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    fixed_by: str | None = Field(default=None, max_length=4, description="resolve: what mended it, M1 to M10")
    until: AwareDatetime | None = Field(default=None, description="mute: until then")
    failures: int | None = Field(default=None, ge=1, le=10**9, description="mute: for so many more failures")
    users: int | None = Field(default=None, ge=1, le=10**9, description="mute: until so many more users are hit")
    for_me: bool = Field(default=False, description="mute: hide it from you alone")
    to: str | None = Field(default=None, max_length=200, description="assign: to whom; null: to nobody")
    ticket: str | None = Field(default=None, max_length=500, description="link: an http or https address")
    text: str = Field(default="", max_length=4_000, description="comment")
    groups: list[FailureId] = Field(default=[], max_length=50, description="merge: the groups to take in")
    fingerprint: str = Field(default="", max_length=200, description="take_out: which of the merged")
    field: str = Field(default="", max_length=20, description="split: cluster, queue, team, user or node")
    value: str = Field(
        default="", max_length=200, description="split: what the field says in the failures to split off"
    )


class FeedbackGiven(BaseModel):
    """What a person says of a verdict.

    `confirm`: it is right. `correct`: the axes given are so; the others follow from the cause or stay. `contest`: the
    job's owner disagrees. `category` and `symptom` may be "none".
    """

    model_config = ConfigDict(extra="forbid")

    kind: Literal["confirm", "correct", "contest"]
    side: str | None = None
    cause: str | None = None
    category: str | None = None
    symptom: str | None = None
    retry: str | None = None
    note: str | None = Field(default=None, max_length=4_000)
    version: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="the version that was looked at; 409 where another stands"
    )
    model_shown: bool = Field(default=True, description="whether the verdict was seen before judging")
    fixed_by: str | None = Field(
        default=None, max_length=4, description="with confirm or correct: what mended it, M1 to M10; none takes it back"
    )


class BulkFeedback(FeedbackGiven):
    """The same said of many failures."""

    failures: list[FailureId] = Field(min_length=1, max_length=500)
    versions: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default=[],
        max_length=500,
        description="the version of each that was looked at, in their order; those at another meanwhile are left out",
    )


class FeedbackReceipt(BaseModel):
    """What became of it. `changed`: the verdict says something else now, and hooks are told."""

    failure_id: int
    feedback_id: int
    version: int
    changed: bool
    label: Label


class BulkFeedbackResult(BaseModel):
    """What became of each; failures that are gone, or stand at another version than was looked at, are left out."""

    items: list[FeedbackReceipt]


class FixedBy(BaseModel):
    """What mended a failure: one of the ten mitigations, M1 to M10; none takes it back."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(max_length=4)


class FeedbackAnswer(BaseModel):
    """What was said of a failure, oldest first, what stands of it, and what people say mended it."""

    label: Label | None
    fixed_by: ReportedFix | None = None
    items: list[StoredFeedback]


class QueuePage(BaseModel):
    """Failures whose label is disputed or contested."""

    items: list[Queued]
    next_cursor: str | None


class AuditAnswer(BaseModel):
    """A week's random sample; the verdicts are not told, so that nobody is led by them."""

    week: str
    items: list[Audit]


class ImportAnswer(BaseModel):
    """What became of imported labels."""

    taken: int
    elsewhere: list[str]
    wrong: list[str]


class Saved(BaseModel):
    """A list's filters under a name, for whoever asks."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]*$")
    page: Literal["/failures", "/groups"] = "/failures"
    query: str = Field(default="", max_length=2_000, description="the query string, without its question mark")


class SavedViews(BaseModel):
    """All that one saved."""

    items: list[Saved]


class Protected(BaseModel):
    """Whether a label is part of the golden set."""

    model_config = ConfigDict(extra="forbid")

    golden: bool
