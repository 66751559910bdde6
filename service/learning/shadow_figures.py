"""Figures of a shadow run: what a candidate changes on stored failures, compared with the model in use. Pure."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

MOST_EXAMPLES: Final = 20


class ChangedFailure(BaseModel):
    """A failure that gets another verdict. Verdicts are a side and a cause; GPU-hours are those that it lost."""

    model_config = ConfigDict(frozen=True)

    failure: int
    headline: str
    before: str
    after: str
    decision_before: str
    decision_after: str
    gpu_hours: float

    @property
    def change(self) -> str:
        """The change in words."""
        return f"{self.before} to {self.after}"


class CauseChanges(BaseModel):
    """The failures of one cause, as the model in use names it, and those whose side or cause changes."""

    model_config = ConfigDict(frozen=True)

    cause: str
    read: int
    changed: int


class DecisionChange(BaseModel):
    """Failures whose advice changes from one decision to another, and the GPU-hours that they lost."""

    model_config = ConfigDict(frozen=True)

    before: str
    after: str
    failures: int
    gpu_hours: float


class ShadowFigures(BaseModel):
    """The result of a shadow run.

    Attributes:
        read: the failures that both models classified.
        changed: those whose side or cause differs.
        by_cause: the same by the cause that the model in use names.
        decisions: changed decisions.
        examples: at most 20 changed failures, of different changes first, then those that lost most.
        until: the end of the newest failure, as an ISO time; empty where none was read.
    """

    model_config = ConfigDict(frozen=True)

    read: int = 0
    changed: int = 0
    by_cause: tuple[CauseChanges, ...] = ()
    decisions: tuple[DecisionChange, ...] = ()
    examples: tuple[ChangedFailure, ...] = ()
    until: str = ""

    @property
    def share(self) -> float:
        """The share of changed verdicts, 0 where none was read."""
        return self.changed / self.read if self.read else 0.0


def figures(read: Sequence[ChangedFailure], until: str) -> ShadowFigures:
    """The figures of failures that both models classified, changed or not.

    Args:
        read: the failures, each with both verdicts and decisions.
        until: the end of the newest one, as an ISO time.
    """
    changed = [one for one in read if one.before != one.after]
    of_cause = Counter(_cause(one) for one in read)
    changed_of_cause = Counter(_cause(one) for one in changed)
    moved = [one for one in read if one.decision_before != one.decision_after]
    pairs = Counter((one.decision_before, one.decision_after) for one in moved)
    return ShadowFigures(
        read=len(read),
        changed=len(changed),
        by_cause=tuple(
            CauseChanges(cause=cause, read=count, changed=changed_of_cause[cause])
            for cause, count in sorted(of_cause.items())
        ),
        decisions=tuple(
            DecisionChange(before=before, after=after, failures=count, gpu_hours=_hours(moved, before, after))
            for (before, after), count in sorted(pairs.items())
        ),
        examples=_examples([*changed, *(one for one in moved if one.before == one.after)]),
        until=until,
    )


def added(first: ShadowFigures, second: ShadowFigures) -> ShadowFigures:
    """The figures of two runs over different failures."""
    causes: defaultdict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for one in (*first.by_cause, *second.by_cause):
        read, changed = causes[one.cause]
        causes[one.cause] = (read + one.read, changed + one.changed)
    decisions: defaultdict[tuple[str, str], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for each in (*first.decisions, *second.decisions):
        count, hours = decisions[each.before, each.after]
        decisions[each.before, each.after] = (count + each.failures, hours + each.gpu_hours)
    return ShadowFigures(
        read=first.read + second.read,
        changed=first.changed + second.changed,
        by_cause=tuple(CauseChanges(cause=one, read=n, changed=k) for one, (n, k) in sorted(causes.items())),
        decisions=tuple(
            DecisionChange(before=before, after=after, failures=count, gpu_hours=hours)
            for (before, after), (count, hours) in sorted(decisions.items())
        ),
        examples=_examples([*first.examples, *second.examples]),
        until=max(first.until, second.until),
    )


def _cause(one: ChangedFailure) -> str:
    return one.before.rpartition(" ")[2]


def _hours(moved: Sequence[ChangedFailure], before: str, after: str) -> float:
    return sum(one.gpu_hours for one in moved if (one.decision_before, one.decision_after) == (before, after))


def _examples(changed: Sequence[ChangedFailure]) -> tuple[ChangedFailure, ...]:
    """Failures of all changes in turn, those that lost most first."""
    seen: Counter[str] = Counter()
    ranked = []
    for one in sorted(changed, key=lambda one: -one.gpu_hours):
        ranked.append((seen[one.change], one))
        seen[one.change] += 1
    ranked.sort(key=lambda item: item[0])
    return tuple(one for _, one in ranked[:MOST_EXAMPLES])
