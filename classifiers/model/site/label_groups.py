"""Labels of a site as groups of failures: which labels agree, who gave them, and which are a random sample."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

import numpy as np

from classifiers import taxonomy
from classifiers.data.labelled_cases import AXES, LabelledCase
from classifiers.model.packaged_scores import PackagedScores
from classifiers.model.site.memory import PEOPLE_TO_OVERRULE, RESUBMITTED, FailureKeys, MemoryEntry

# Judgement: share of the labels of a group that must agree, or none of them counts.
AGREEING_SHARE: Final = 2 / 3
_ROUNDING: Final = 1e-9
# Judgement: keys of lines that a group keeps.
LINES_OF_GROUP: Final = 12
# Judgement: confidence in the label of a group before any group has several labels, and the labels this counts as.
PRIOR_AGREEMENT: Final = 0.95
PRIOR_LABELS: Final = 20


@dataclass(frozen=True)
class ScoredLabel:
    """One labelled failure with its keys and the packaged scores of this one case."""

    case: LabelledCase
    keys: FailureKeys
    scores: PackagedScores


@dataclass(frozen=True)
class LabelledGroup:
    """Labelled failures with one fingerprint whose labels agree.

    Attributes:
        members: the failures with the agreed label, in the order of the labels.
        labels: the agreed label by axis.
        people: people who gave it.
        dissenting: failures of the group with another label.
    """

    members: Sequence[ScoredLabel]
    labels: dict[str, str]
    people: int
    dissenting: int

    @property
    def representative(self) -> ScoredLabel:
        """The failure that stands for the group in corrections."""
        return self.members[0]


def groups_of(labelled: Sequence[ScoredLabel]) -> tuple[list[LabelledGroup], set[str]]:
    """The groups whose labels agree, and the ids of cases in groups whose labels do not."""
    by_print: dict[str, list[ScoredLabel]] = defaultdict(list)
    for one in labelled:
        if _judged(one.case) is not None:
            by_print[one.keys.fingerprint].append(one)
    groups, conflicts = [], set()
    for members in by_print.values():
        weights = _votes(members)
        best = max(weights, key=lambda judged: weights[judged])
        agreeing = [member for member in members if _judged(member.case) == best]
        if weights[best] < AGREEING_SHARE * sum(weights.values()) - _ROUNDING:
            conflicts |= {member.case.id for member in members}
            continue
        conflicts |= {member.case.id for member in members if _judged(member.case) != best}
        labels, people = _agreed(agreeing), _people(agreeing)
        if people >= PEOPLE_TO_OVERRULE and _people_who_retry(agreeing, labels) < PEOPLE_TO_OVERRULE:
            del labels["retry"]  # they agree on the cause; that a retry helps is the word of one of them
        groups.append(LabelledGroup(agreeing, labels, people, len(members) - len(agreeing)))
    return groups, conflicts


def _votes(members: Sequence[ScoredLabel]) -> dict[tuple[str, str | None] | None, float]:
    """By label of a group what it counts: each person has one vote, however many of its failures they labelled.

    The labels that one person gave share the vote; where several people agree on a failure, each of them has one.
    """
    given = Counter(str(member.case.provenance.get("who")) for member in members)
    found: dict[tuple[str, str | None] | None, float] = defaultdict(float)
    for member in members:
        people = max(1, int(member.case.provenance.get("people") or 1))
        found[_judged(member.case)] += people / given[str(member.case.provenance.get("who"))]
    return found


def _judged(case: LabelledCase) -> tuple[str, str | None] | None:
    """Side and cause that a person gave; None without either."""
    side, cause = case.labels.best["side"], case.labels.best["cause"]
    if side is None:
        return None if cause is None else (taxonomy.load().side_of(cause), cause)
    return side, cause


def _agreed(members: Sequence[ScoredLabel]) -> dict[str, str]:
    """By axis the label that all members with a label have."""
    judged = _judged(members[0].case)
    found = {} if judged is None else {"side": judged[0]} | ({} if judged[1] is None else {"cause": judged[1]})
    for axis in AXES:
        given = {member.case.labels.best[axis] for member in members} - {None}
        if axis not in found and len(given) == 1:
            found[axis] = str(given.pop())
    return found


def _people(members: Sequence[ScoredLabel]) -> int:
    names = {str(member.case.provenance.get("who")) for member in members}
    return max(len(names), *(int(member.case.provenance.get("people") or 1) for member in members))


def _people_who_retry(members: Sequence[ScoredLabel], labels: Mapping[str, str]) -> int:
    """People by whose word a retry helps, where this is the label; else all of them."""
    retry = labels.get("retry")
    return _people(
        [member for member in members if retry not in RESUBMITTED or member.case.labels.best["retry"] == retry]
    )


def entry_of(group: LabelledGroup) -> MemoryEntry:
    """What memory keeps of a group."""
    lines = dict.fromkeys(line for member in group.members for line in member.keys.all_lines)
    return MemoryEntry(
        fingerprints=tuple(sorted({member.keys.fingerprint for member in group.members})),
        lines=tuple(lines)[:LINES_OF_GROUP],
        labels=group.labels,
        people=group.people,
        cases=tuple(member.case.id for member in group.members),
    )


def share_agreeing(groups: Iterable[LabelledGroup]) -> float:
    """Share of labels that agree with the label of their group, shrunk towards `PRIOR_AGREEMENT`."""
    several = [group for group in groups if len(group.members) + group.dissenting > 1]
    agreeing = sum(len(group.members) for group in several)
    total = agreeing + sum(group.dissenting for group in several)
    return (agreeing + PRIOR_AGREEMENT * PRIOR_LABELS) / (total + PRIOR_LABELS)


def folds_of(groups: Sequence[LabelledGroup], folds: int) -> Any:
    """The fold of each group; groups of one program are in the same fold."""
    names = (
        str(group.representative.case.provenance.get("program") or group.representative.case.group) for group in groups
    )
    return np.array([crc32(name.encode()) % folds for name in names], dtype=np.int64)


def is_random_sample(case: LabelledCase) -> bool:
    """Whether a failure was labelled whatever the model said of it.

    True for audited failures and for cases that no operator labelled. What operators correct or confirm is a biased
    sample of the failures: it says nothing about how often the model is right.
    """
    provenance = case.provenance
    return provenance.get("origin") != "operator" or provenance.get("feedback") == "audit"


def labellers(cases: Iterable[LabelledCase]) -> dict[str, int]:
    """The number of labels of each labeller."""
    return dict(sorted(Counter(str(case.provenance.get("who") or "unknown") for case in cases).items()))
