"""Records of feedback: plain frozen dataclasses, no SQL."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

# unsure: the person looked and cannot tell; it is no judgement. contest and agree: votes of a job's submitter.
FeedbackKind = Literal["confirm", "correct", "contest", "agree", "audit", "import", "unsure"]
VOTES: tuple[FeedbackKind, ...] = ("contest", "agree")
JUDGING: tuple[FeedbackKind, ...] = ("confirm", "correct", "audit", "import")


@dataclass(frozen=True, slots=True)
class Labels:
    """A person's labels for a failure; None: no statement on that axis.

    `category` and `symptom` may be "none": the failure has none.
    """

    side: str | None = None
    cause: str | None = None
    category: str | None = None
    symptom: str | None = None
    retry: str | None = None


@dataclass(frozen=True, slots=True)
class NewFeedback:
    """One person's feedback on one failure, to be stored.

    `version` is the version of the verdict it is about, `said_side` and `said_cause` are those of that version.
    `model_shown`: the person saw the verdict before judging. `evidence`: the lines shown to the person. `held`: why the
    label waits for a second person, None if it does not.
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
    held: str | None = None


@dataclass(frozen=True, slots=True)
class StoredFeedback:
    """One person's feedback as stored."""

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
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """The label of a failure that follows from all its feedback.

    `disputed`: the last judgements of two people differ in side or cause. `contested`: the owner's last vote disagrees,
    and nobody has judged the failure since. `golden`: part of the protected set that later feedback does not change.
    `held`: why it waits for a second person; until one gives the same label, nothing is learned from it.
    """

    failure_id: int
    at: datetime
    who: str
    labels: Labels
    people: int
    disputed: bool
    contested: bool
    golden: bool
    held: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """One failure of a weekly random sample.

    `feedback_id` None: not judged yet. `right`: the machine's side and cause are those of the judgement, None where the
    person cannot tell (`unsure`). The machine's answer is that of the time of the draw, not a person's correction.
    """

    week: str
    failure_id: int
    feedback_id: int | None
    right: bool | None
    unsure: bool = False


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One failure of a weekly random sample, for statistics; never shown before it is judged.

    `stratum`: the machine's side, `undecided`, or `judged` where a person had judged it before the draw; empty for
    samples without strata. `population`: failures of this stratum in the week, None where it is not known.
    """

    week: str
    stratum: str
    population: int | None
    judged: bool
    unsure: bool
    side_right: bool | None
    cause_right: bool | None


@dataclass(frozen=True, slots=True)
class FeedbackInput:
    """A person's feedback, about one failure or many.

    `version`: the version the person saw, None: the current one. `fixed_by`: the mitigation that fixed it, M1 to M10.
    """

    kind: FeedbackKind
    labels: Labels = Labels()
    note: str | None = None
    model_shown: bool = True
    version: int | None = None
    fixed_by: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackResult:
    """The result of one feedback: its number, the new version of the verdict, and the resulting label."""

    failure_id: int
    feedback_id: int
    version: int
    changed: bool
    label: Label


@dataclass(frozen=True, slots=True)
class GroupLabel:
    """A label that a person gave to a group, as long as nobody withdrew it.

    `cause`: that of the label. `before`: side, cause, undecided, and the time of the label of the group before it.
    `judgements`: the failures that were labelled with it, at least one, and the number of the feedback on each.
    """

    group_id: int
    at: datetime
    who: str
    cause: str
    before: tuple[str, str, bool, datetime | None]
    judgements: Sequence[tuple[int, int]]

    @property
    def number(self) -> int:
        """The number of the label: that of its first feedback."""
        return self.judgements[0][1]


@dataclass(frozen=True, slots=True)
class WithdrawnGroupLabel:
    """What the withdrawal of a group's label changed: `cause` of the label, and failures with and without a change."""

    cause: str
    failures: int
    unchanged: int
