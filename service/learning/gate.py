"""The gate: compares a candidate with the model in use and promotes it, refuses it or asks a person. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import adaptation, metrics
from classifiers.evaluation.metrics import Answer
from classifiers.model.site.memory import RESUBMITTED
from service.formatting import with_noun
from service.learning.records import GateDecision, GateResult
from service.learning.shadow_figures import ShadowFigures
from service.recommend.rule_chain import RESUBMITTING

# Judgement: what a candidate may lose. A side loses more than a share of its cases, and at least so many.
LOST_RECALL: Final = 0.01
LOST_CASES: Final = 2
LOST_CALIBRATION: Final = 0.02
# Judgement: of new labels, the share of one labeller above which a second person looks, and labels it applies from.
ONE_LABELLER: Final = 0.8
LABELS_OF_MANY: Final = 10
# Judgement: labels that contradict a confident verdict, and their share, from which a second person looks.
OVERTURNED: Final = 3
OVERTURNED_SHARE: Final = 0.3
CONFIDENT: Final = 0.89
HELD_OUT_LABELS: Final = 20
# Judgement: changed verdicts of a shadow run, and their share, from which a second person looks.
CHANGED: Final = 5
CHANGED_SHARE: Final = 0.2


@dataclass(frozen=True)
class Comparison:
    """Answers of the model in use (`before`) and of the candidate (`after`) to one set of cases."""

    name: str
    cases: Sequence[LabelledCase]
    before: Sequence[Answer]
    after: Sequence[Answer]


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What the gate needs to know of the labels.

    Attributes:
        labels: number of labels.
        labellers: labels of each labeller.
        conflicts: labels of groups that contradict each other.
        overturned: labels of one person that contradict a confident verdict of the packaged model.
    """

    labels: int
    labellers: Mapping[str, int]
    conflicts: int
    overturned: int


def judge(
    comparisons: Sequence[Comparison],
    facts: LabelFacts,
    shadow: ShadowFigures | None = None,
    since_packaged: Sequence[Comparison] = (),
) -> GateResult:
    """The decision on a candidate.

    Args:
        comparisons: the packaged cases, the golden set and the newest labels held out; empty ones are left out.
        facts: the labels that the candidate rests on.
        shadow: what the candidate changes on stored failures; None: not known.
        since_packaged: comparisons with the packaged model where another layer is in use: a candidate may lose no more
            than if it were the first one, however many layers were before it.
    """
    refusals: list[str] = [reason for one in since_packaged for reason in _harm(one)]
    questions: list[str] = []
    figures: dict[str, Any] = {}
    for one in comparisons:
        if one.cases:
            figures[one.name] = _figures(one)
            refusals += _harm(one)
            questions += _doubts(one)
    questions += _doubts_of_labels(facts)
    if shadow is not None:
        questions += _doubts_of_changes(shadow)
    if refusals:
        return GateResult("refuse", tuple(refusals), figures, shadow)
    if questions:
        return GateResult("ask", tuple(questions), figures, shadow)
    return GateResult("promote", (_gains(comparisons),), figures, shadow)


def interrupted(result: GateResult) -> GateResult:
    """The decision where the golden set was changed while a candidate was fitted and compared."""
    reason = "the golden set was changed meanwhile, so that the candidate may have learned from it: retrain again"
    if result.decision == "promote":
        return replace(result, decision="ask", reasons=(reason,))
    return replace(result, reasons=(*result.reasons, reason))


def _figures(one: Comparison) -> dict[str, Any]:
    found = adaptation.differences(one.cases, one.before, one.after)
    return {
        "cases": len(one.cases),
        **{
            name: [round(value, 4) for value in (each.before, each.after, each.low, each.high)]
            for name, each in found.items()
        },
        "recall": {side: list(row) for side, row in adaptation.recalls(one.cases, one.before, one.after).items()},
        "futile_resubmits": [_futile_resubmits(one.cases, one.before), _futile_resubmits(one.cases, one.after)],
    }


def _harm(one: Comparison) -> list[str]:
    """Reasons to refuse."""
    reasons = []
    for side, (cases, before, after) in adaptation.recalls(one.cases, one.before, one.after).items():
        lost = round((before - after) * cases)
        if before - after > LOST_RECALL and lost >= LOST_CASES:
            reasons.append(
                f"{one.name}: {lost} of {cases} {side} failures are no longer recognised "
                f"(recall {before:.3f} to {after:.3f}; at most {LOST_RECALL:.0%} may be lost)"
            )
    before, after = _futile_resubmits(one.cases, one.before), _futile_resubmits(one.cases, one.after)
    if after > before:
        reasons.append(f"{one.name}: {with_noun(after, 'futile failure')} would be resubmitted, {before} before")
    return reasons


def _doubts(one: Comparison) -> list[str]:
    """Reasons to ask a person."""
    points = [
        [
            (answer.confidence, answer.labels["side"] in case.labels.allowed["side"])
            for case, answer in zip(one.cases, given, strict=True)
            if case.labels.best["side"] is not None
        ]
        for given in (one.before, one.after)
    ]
    before, after = (metrics.expected_calibration_error(given) for given in points)
    if len(points[0]) >= HELD_OUT_LABELS and after - before > LOST_CALIBRATION:
        return [f"{one.name}: the calibration error grows from {before:.3f} to {after:.3f}"]
    return []


def _doubts_of_labels(facts: LabelFacts) -> list[str]:
    reasons = []
    name = one_labeller(facts.labellers)
    if name is not None:
        most, total = facts.labellers[name], sum(facts.labellers.values())
        reasons.append(f"{most} of {total} labels are by {name}: a second person has to agree")
    if facts.overturned >= OVERTURNED and facts.overturned > OVERTURNED_SHARE * facts.labels:
        reasons.append(
            f"{facts.overturned} of {facts.labels} labels contradict a verdict of at least {CONFIDENT:.0%} confidence"
        )
    if facts.conflicts > OVERTURNED_SHARE * max(1, facts.labels):
        reasons.append(f"{facts.conflicts} of {facts.labels} labels contradict others of their group")
    return reasons


def one_labeller(labellers: Mapping[str, int]) -> str | None:
    """The person who gave nearly all labels, where there are many; None if there is none."""
    total = sum(labellers.values())
    name, most = max(labellers.items(), key=lambda item: item[1], default=("", 0))
    return name if total >= LABELS_OF_MANY and most > ONE_LABELLER * total else None


def _doubts_of_changes(shadow: ShadowFigures) -> list[str]:
    reasons = []
    if shadow.changed >= CHANGED and shadow.share > CHANGED_SHARE:
        reasons.append(
            f"shadow run: {shadow.changed} of {shadow.read} failures would get a different verdict "
            f"(more than {CHANGED_SHARE:.0%} needs a person)"
        )
    resubmits = [one for one in shadow.decisions if one.after in RESUBMITTING and one.before not in RESUBMITTING]
    if resubmits:
        failures, hours = sum(one.failures for one in resubmits), sum(one.gpu_hours for one in resubmits)
        reasons.append(
            f"shadow run: {with_noun(failures, 'failure')} ({hours:.1f} GPU-hours) would be resubmitted, "
            "which the model in use does not resubmit"
        )
    return reasons


def _futile_resubmits(cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> int:
    """Failures whose retry is futile or needs a repair first, and whose answer resubmits them."""
    return sum(
        case.labels.best["retry"] is not None
        and not RESUBMITTED & set(case.labels.allowed["retry"])
        and answer.labels["retry"] in RESUBMITTED
        for case, answer in zip(cases, answers, strict=True)
    )


def _gains(comparisons: Sequence[Comparison]) -> str:
    shown = []
    for one in comparisons:
        if one.cases:
            right = [
                sum(
                    answer.labels["side"] in case.labels.allowed["side"]
                    for case, answer in zip(one.cases, given, strict=True)
                )
                for given in (one.before, one.after)
            ]
            shown.append(f"{one.name}: side right in {right[1]} of {len(one.cases)}, {right[0]} before")
    return "no set of cases gets worse; " + "; ".join(shown)


def overturned(cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> int:
    """Labels of one person that contradict a confident answer of the packaged model."""
    people = Counter((case.kind, case.labels.best["side"], case.provenance.get("who")) for case in cases)
    by_group = Counter((kind, side) for kind, side, _ in people)
    return sum(
        answer.confidence >= CONFIDENT
        and case.labels.best["side"] is not None
        and answer.labels["side"] not in case.labels.allowed["side"]
        and by_group[case.kind, case.labels.best["side"]] == 1
        for case, answer in zip(cases, answers, strict=True)
    )


def decision_in_words(decision: GateDecision) -> str:
    """A decision as a sentence."""
    return {
        "promote": "The gate promotes the candidate.",
        "ask": "The gate asks: a person has to promote the candidate.",
        "refuse": "The gate refuses the candidate.",
    }[decision]
