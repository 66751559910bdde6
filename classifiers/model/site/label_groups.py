"""Labels of a site as groups of failures: which labels agree, who gave them, and which are a random sample.

In a group each person has one vote, which counts as much as the votes of others agree with theirs in all groups that
several people labelled: who contradicts the others everywhere does not cancel their labels.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

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
# Judgement: groups that several people labelled which the usual trust in a person counts as.
PRIOR_GROUPS: Final = 2

Judged = tuple[str, str | None]  # side and cause that a person gave; None: no cause


@dataclass(frozen=True)
class ScoredLabel:
    """One labelled failure with its keys.

    `scores`: its packaged scores, of random samples and the first failure of a group with its label; None of others.
    """

    case: LabelledCase
    keys: FailureKeys
    scores: PackagedScores | None


@dataclass(frozen=True)
class LabelledGroup:
    """Labelled failures with one fingerprint whose labels agree.

    Attributes:
        members: the failures with the agreed label, in the order of the labels.
        labels: the agreed label by axis.
        people: people who gave it.
    """

    members: Sequence[ScoredLabel]
    labels: dict[str, str]
    people: int

    @property
    def representative(self) -> ScoredLabel:
        """The failure that stands for the group in corrections."""
        return self.members[0]

    @property
    def scores(self) -> PackagedScores:
        """The packaged scores of the representative."""
        scores = self.members[0].scores
        assert scores is not None, "the first one of its group with its label has scores"
        return scores


@dataclass(frozen=True)
class Grouped:
    """Labels by groups.

    Attributes:
        groups: the groups whose labels agree.
        conflicts: ids of the cases whose label is not that of their group, or whose group has none.
        agreement: share of the votes that agree with the label of their group, shrunk towards `PRIOR_AGREEMENT`.
    """

    groups: list[LabelledGroup]
    conflicts: set[str]
    agreement: float


def groups_of(labelled: Sequence[ScoredLabel]) -> Grouped:
    """The groups of labelled failures, by fingerprint."""
    by_print: dict[str, list[ScoredLabel]] = defaultdict(list)
    for one in labelled:
        if _judged(one.case) is not None:
            by_print[one.keys.fingerprint].append(one)
    votes = {name: _votes(members) for name, members in by_print.items()}
    trust = _trust(votes.values())
    groups, conflicts = [], set()
    agreeing_votes = all_votes = 0.0
    for name, members in by_print.items():
        best, agrees = _chosen(votes[name], trust)
        given = sum(votes[name].values())
        if given > 1 + _ROUNDING:  # of several people
            agreeing_votes += sum(vote for (_, judged), vote in votes[name].items() if _agree(judged, best))
            all_votes += given
        agreeing = [member for member in members if agrees and _agree(_judged(member.case), best)]
        conflicts |= {member.case.id for member in members} - {member.case.id for member in agreeing}
        if agreeing:
            groups.append(_group(agreeing, best))
    agreement = (agreeing_votes + PRIOR_AGREEMENT * PRIOR_LABELS) / (all_votes + PRIOR_LABELS)
    return Grouped(groups, conflicts, agreement)


def _group(agreeing: Sequence[ScoredLabel], best: Judged) -> LabelledGroup:
    giving = [member for member in agreeing if _judged(member.case) == best]  # others name the side alone
    labels, people = _agreed(agreeing, best), _people(giving)
    if people >= PEOPLE_TO_OVERRULE and _people_who_retry(giving, labels) < PEOPLE_TO_OVERRULE:
        labels.pop("retry", None)  # they agree on the cause; that a retry helps is the word of one of them
    return LabelledGroup(agreeing, labels, people)


def _votes(members: Sequence[ScoredLabel]) -> dict[tuple[str, Judged], float]:
    """By person and label of a group how many people it is the vote of.

    The labels that one person gave share the vote; where several people agree on a failure, each of them has one.
    """
    given = Counter(_who(member.case) for member in members)
    found: dict[tuple[str, Judged], float] = defaultdict(float)
    for member in members:
        who, judged = _who(member.case), _judged(member.case)
        if judged is not None:
            found[who, judged] += max(1, int(member.case.provenance.get("people") or 1)) / given[who]
    return found


def _trust(groups: Iterable[Mapping[tuple[str, Judged], float]]) -> dict[str, float]:
    """What a vote of a person counts: the share of other people's votes that agree, in groups of several people."""
    agreed: dict[str, float] = defaultdict(float)
    counted: Counter[str] = Counter()
    for votes in groups:
        for who in {name for name, _ in votes}:
            own = {judged: vote for (name, judged), vote in votes.items() if name == who}
            # A failure that several people agree on has the name of one of them: the others agree with this one.
            together = sum(own.values()) - 1
            others = together + sum(vote for (name, _), vote in votes.items() if name != who)
            if others <= _ROUNDING:
                continue
            with_them = sum(
                share * vote
                for judged, share in own.items()
                for (name, other), vote in votes.items()
                if name != who and _agree(judged, other)
            )
            agreed[who] += (together + with_them / sum(own.values())) / others
            counted[who] += 1
    return {
        who: (agreed[who] + PRIOR_AGREEMENT * PRIOR_GROUPS) / (number + PRIOR_GROUPS) for who, number in counted.items()
    }


def _chosen(votes: Mapping[tuple[str, Judged], float], trust: Mapping[str, float]) -> tuple[Judged, bool]:
    """The label of a group with most votes, and whether enough of them agree.

    A side alone speaks for each cause of this side, but does not choose among them.
    """
    weights: dict[Judged, float] = defaultdict(float)
    for (who, judged), vote in votes.items():
        weights[judged] += vote * trust.get(who, 1.0)

    def silent(judged: Judged) -> float:
        return weights.get((judged[0], None), 0.0) if judged[1] is not None else 0.0

    best = max(weights, key=lambda judged: (weights[judged] + silent(judged), judged[1] is not None))
    return best, weights[best] >= AGREEING_SHARE * (sum(weights.values()) - silent(best)) - _ROUNDING


def _agree(judged: Judged | None, best: Judged) -> bool:
    """Whether a label is that of a group, or one of the same side where one of them names no cause."""
    return judged is not None and judged[0] == best[0] and (judged[1] == best[1] or None in (judged[1], best[1]))


def _who(case: LabelledCase) -> str:
    return str(case.provenance.get("who"))


def _judged(case: LabelledCase) -> Judged | None:
    """Side and cause that a person gave; None without either."""
    side, cause = case.labels.best["side"], case.labels.best["cause"]
    if side is None:
        return None if cause is None else (taxonomy.load().side_of(cause), cause)
    return side, cause


def _agreed(members: Sequence[ScoredLabel], best: Judged) -> dict[str, str]:
    """By axis the label that all members with a label have; side and cause are the agreed ones."""
    found = {"side": best[0]} | ({} if best[1] is None else {"cause": best[1]})
    for axis in AXES:
        given = {member.case.labels.best[axis] for member in members} - {None}
        if axis not in found and len(given) == 1:
            found[axis] = str(given.pop())
    return found


def _people(members: Sequence[ScoredLabel]) -> int:
    names = {_who(member.case) for member in members}
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


def folds_of(groups: Sequence[LabelledGroup], folds: int) -> NDArray[np.int64]:
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
