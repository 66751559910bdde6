"""What people say of verdicts, as it goes into the store and comes out: plain frozen dataclasses, no SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

FeedbackKind = Literal["confirm", "correct", "contest", "audit", "import"]


@dataclass(frozen=True, slots=True)
class Labels:
    """What somebody says is true of a failure; None: nothing is said of that axis.

    `category` and `symptom` may be "none": the failure has none.
    """

    side: str | None = None
    cause: str | None = None
    category: str | None = None
    symptom: str | None = None
    retry: str | None = None


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """One person's word about one failure, as it goes in.

    `version` is the verdict's that it is about, `said_side` and `said_cause` what that version said. `model_shown`:
    whether the person saw the verdict before judging. `evidence`: the lines the person had before them.
    """

    failure_id: int
    who: str
    kind: FeedbackKind
    version: int
    said_side: str
    said_cause: str
    labels: Labels = Labels()
    note: str | None = None
    model_shown: bool = True
    evidence: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Said:
    """One person's word as stored."""

    id: int
    failure_id: int
    at: datetime
    who: str
    kind: FeedbackKind
    version: int
    said_side: str
    said_cause: str
    labels: Labels
    note: str | None
    model_shown: bool


@dataclass(frozen=True, slots=True)
class Label:
    """What stands of all that was said of a failure.

    `disputed`: two people's last words differ in side or cause. `contested`: its owner disagrees, and nobody has
    judged it since. `golden`: part of the protected set that no later word changes.
    """

    failure_id: int
    at: datetime
    who: str
    labels: Labels
    people: int
    disputed: bool
    contested: bool
    golden: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """One failure of a week's random sample; `feedback_id` None: not judged yet. `right`: what the judgement said."""

    week: str
    failure_id: int
    feedback_id: int | None
    right: bool | None


@dataclass(frozen=True, slots=True)
class SavedView:
    """A list with its filters, under a name."""

    name: str
    page: str
    query: str
