"""Metrics of verdicts on labelled cases: accuracy and F1 by class, calibration, coverage.

A label counts as right if it is in the case's list of labels that experts could defend (`*_ok`). Labels that are
guesses are not counted: those of the other axes where a case was composed for one axis only.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from classifiers.contracts import LogStream, Verdict
from classifiers.data.labelled_cases import AXES, NONE, WEAK_CLASS, LabelledCase
from classifiers.extraction.scan import tidy
from classifiers.model.beginnings import same_line
from classifiers.report_detection import is_report

BINS: Final = 10
MISTAKES_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class Answer:
    """Predicted labels of one case with the confidence of the side, of a model or a baseline."""

    labels: Mapping[str, str]
    confidence: float = 1.0
    abstained: bool = False
    rank: int | None = None
    initiating: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of an axis: cases with it, precision, recall and F1."""

    code: str
    cases: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class AxisFigures:
    """One axis: number of cases, accuracy, macro-F1, figures by class; (true, predicted class) → number of cases."""

    axis: str
    cases: int
    accuracy: float
    macro_f1: float
    classes: tuple[ClassRow, ...]
    confusion: Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One wrong cause, with the confidence of the verdict."""

    id: str
    kind: str
    truth: str
    got: str
    confidence: float
    line: str


@dataclass(slots=True)
class Evaluation:
    """All figures of one predictor on one set of cases.

    `root_rank` and `root_line` are accuracy and number of cases.
    """

    name: str
    cases: int
    axes: dict[str, AxisFigures] = field(default_factory=dict)
    ece: float = 0.0
    auroc: float = float("nan")
    answered: float = 1.0
    right_when_answered: float = 0.0
    reliability: list[tuple[float, float, int]] = field(default_factory=list)
    coverage: list[tuple[float, float]] = field(default_factory=list)
    root_rank: tuple[float, int] = (0.0, 0)
    root_line: tuple[float, int] = (0.0, 0)
    mistakes: list[Mistake] = field(default_factory=list)
    weak: dict[str, dict[str, int]] = field(default_factory=dict)


def answer_of(verdict: Verdict) -> Answer:
    """A verdict as an answer."""
    return Answer(
        labels={
            "side": verdict.side,
            "cause": verdict.cause,
            "category": verdict.category or NONE,
            "symptom": verdict.symptom or NONE,
            "retry": verdict.retry_outlook,
        },
        confidence=verdict.confidence,
        abstained=verdict.abstained,
        rank=verdict.suspect.rank if verdict.suspect else None,
        initiating=tuple(line.text for line in verdict.evidence if line.role == "initiating"),
    )


def _axis(axis: str, cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> AxisFigures:
    pairs: list[tuple[str, str]] = []
    for case, answer in zip(cases, answers, strict=True):
        truth = case.labels.best[axis]
        if truth is None or not has_certain_label(case, axis):
            continue
        allowed = case.labels.allowed[axis]
        got = answer.labels[axis]
        pairs.append((truth, truth if got in allowed else got))
    rows = []
    for code in sorted({truth for truth, _ in pairs}):
        hits = sum(truth == code == got for truth, got in pairs)
        predicted = sum(got == code for _, got in pairs)
        there = sum(truth == code for truth, _ in pairs)
        precision, recall = hits / predicted if predicted else 0.0, hits / there
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        rows.append(ClassRow(code, there, precision, recall, f1))
    count = len(pairs)
    return AxisFigures(
        axis=axis,
        cases=count,
        accuracy=sum(truth == got for truth, got in pairs) / count if count else float("nan"),
        macro_f1=sum(row.f1 for row in rows) / len(rows) if rows else float("nan"),
        classes=tuple(rows),
        confusion=Counter(pairs),
    )


def expected_calibration_error(points: Sequence[tuple[float, bool]]) -> float:
    """Mean distance of confidence and share right over ten bins, by their cases."""
    return sum(abs(mean - right) * count for mean, right, count in reliability(points)) / max(1, len(points))


def reliability(points: Sequence[tuple[float, bool]]) -> list[tuple[float, float, int]]:
    """By bin of confidence: mean confidence, share right, cases; empty bins left out."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, right in points:
        bins[min(BINS - 1, max(0, int(np.ceil(confidence * BINS)) - 1))].append((confidence, right))
    return [
        (sum(one for one, _ in inside) / len(inside), sum(right for _, right in inside) / len(inside), len(inside))
        for _, inside in sorted(bins.items())
    ]


def coverage_curve(points: Sequence[tuple[float, bool]]) -> list[tuple[float, float]]:
    """(share answered, share right among them), most confident first, a point each 2 %."""
    ordered = sorted(points, key=lambda point: -point[0])
    out, right = [], 0
    step = max(1, len(ordered) // 50)
    for number, (_, correct) in enumerate(ordered, 1):
        right += correct
        if number % step == 0 or number == len(ordered):
            out.append((number / len(ordered), right / number))
    return out


def auroc(points: Sequence[tuple[float, bool]]) -> float:
    """Chance that a right answer is more confident than a wrong one; not a number if all are right or all wrong."""
    right = np.sort([confidence for confidence, correct in points if correct])
    wrong = np.array([confidence for confidence, correct in points if not correct])
    if not len(right) or not len(wrong):
        return float("nan")
    below = np.searchsorted(right, wrong, side="left")
    equal = np.searchsorted(right, wrong, side="right") - below
    return float(((len(right) - below - equal) + equal / 2).sum() / len(right) / len(wrong))


def has_certain_label(case: LabelledCase, axis: str) -> bool:
    """Whether the label of an axis is known and no guess, as it is where a case was composed for another axis."""
    return case.labels.best[axis] is not None and case.provenance.get("labelled_for") in {None, axis}


def medium_of(case: LabelledCase) -> str:
    """Whether a case is a log or a report that a person wrote: as it is labelled, else as its text reads."""
    medium = case.provenance.get("medium")
    if isinstance(medium, str):
        return medium
    return "report" if any(is_report(stream.text) for stream in case.raw.streams) else "log"


def is_of_many_ranks(case: LabelledCase) -> bool:
    """Whether a case is a run of more than one rank: by its provenance, else by its streams."""
    ranks = case.provenance.get("ranks")
    if isinstance(ranks, int):
        return ranks > 1
    return len({stream.rank for stream in case.raw.streams if stream.rank is not None}) > 1


def _share(right: Sequence[bool]) -> tuple[float, int]:
    return (sum(right) / len(right) if right else float("nan"), len(right))


def _ranks_right(pairs: Sequence[tuple[LabelledCase, Answer]]) -> tuple[float, int]:
    return _share(
        [
            answer.rank == case.labels.root_rank
            for case, answer in pairs
            if case.labels.root_rank is not None and case.raw.streams
        ]
    )


def _lines_right(pairs: Sequence[tuple[LabelledCase, Answer]]) -> tuple[float, int]:
    return _share(
        [same_line(case.labels.root_line, answer.initiating) for case, answer in pairs if case.labels.root_line]
    )


def measure(name: str, cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> Evaluation:
    """All figures of one predictor."""
    out = Evaluation(name=name, cases=len(cases))
    for axis in AXES:
        out.axes[axis] = _axis(axis, cases, answers)
    pairs = [(case, answer) for case, answer in zip(cases, answers, strict=True) if has_certain_label(case, "side")]
    points = [(answer.confidence, answer.labels["side"] in case.labels.allowed["side"]) for case, answer in pairs]
    if points:
        out.ece, out.auroc = expected_calibration_error(points), auroc(points)
        out.reliability, out.coverage = reliability(points), coverage_curve(points)
        sure = [right for (_, right), (_, answer) in zip(points, pairs, strict=True) if not answer.abstained]
        out.answered = len(sure) / len(points)
        out.right_when_answered = sum(sure) / len(sure) if sure else float("nan")
    both = list(zip(cases, answers, strict=True))
    out.root_rank, out.root_line = _ranks_right(both), _lines_right(both)
    out.mistakes = _mistakes(pairs)
    out.weak = {
        axis: {row.code: row.cases for row in out.axes[axis].classes if row.cases < WEAK_CLASS} for axis in AXES
    }
    return out


def _mistakes(pairs: Sequence[tuple[LabelledCase, Answer]]) -> list[Mistake]:
    found = [
        Mistake(
            id=case.id,
            kind=case.kind,
            truth=str(case.labels.best["cause"]),
            got=answer.labels["cause"],
            confidence=answer.confidence,
            line=answer.initiating[0] if answer.initiating else _first_line(case.raw.streams),
        )
        for case, answer in pairs
        if answer.labels["cause"] not in case.labels.allowed["cause"]
    ]
    return sorted(found, key=lambda mistake: -mistake.confidence)[:MISTAKES_SHOWN]


def _first_line(streams: Sequence[LogStream]) -> str:
    return tidy(next((stream.text for stream in streams if stream.text.strip()), "").strip().split("\n")[0], 200)
