"""Figures of verdicts on labelled cases with confidence intervals, for all cases and for parts of them.

A label counts as right if experts could defend it. A case that was composed for one axis only is not counted on the
others, where its label is a guess. Intervals come from a bootstrap over sources (`LabelledCase.group`), because the
cases of one source are alike: a set of many cases of few sources has wide intervals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from classifiers import taxonomy
from classifiers.data.labelled_cases import AXES, LabelledCase
from classifiers.evaluation.metrics import Answer, has_certain_label, is_of_many_ranks, medium_of
from classifiers.evaluation.resampling import Estimate, Floats, Totals, divided, estimate
from classifiers.model.beginnings import same_line

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class CauseFigures:
    """One true cause: its cases and sources, recall with interval, and precision."""

    code: str
    cases: int
    sources: int
    recall: Estimate
    precision: float


@dataclass(frozen=True, slots=True)
class PartFigures:
    """The figures of one predictor on one part of the cases; `figures` are by the names in `TITLES`."""

    part: str
    predictor: str
    cases: int
    sources: int
    figures: Mapping[str, Estimate]
    causes: tuple[CauseFigures, ...]


TITLES: Final[Mapping[str, str]] = {
    **{
        f"{axis}.{figure}": f"{axis}: {title}"
        for axis in AXES
        for figure, title in (("right", "right"), ("macro_f1", "macro-F1"), ("macro_recall", "macro recall"))
    },
    "side.decidable": "side: right where decidable",
    "answered": "answered",
    "right_when_answered": "side right when answered",
    "ece": "calibration error of the side",
    **{
        f"{side}.{figure}": f"predicted {side}: {title}"
        for side in taxonomy.load().sides
        for figure, title in (("right", "right"), ("confidence", "mean confidence"), ("ece", "calibration error"))
    },
    "root_rank": "root rank named",
    "first_line": "first initiating line is the root line",
    "any_line": "an initiating line is the root line",
    "initiating_lines": "initiating lines, mean",
    "many_ranks.root_rank": "several ranks: root rank named",
    "many_ranks.first_line": "several ranks: first initiating line",
}


def is_decidable(case: LabelledCase) -> bool:
    """Whether event and log suffice to tell the side: as the case states, else whether experts defend one side only."""
    stated = case.provenance.get("decidable")
    return stated if isinstance(stated, bool) else len(case.labels.allowed["side"]) == 1


def parts_of(cases: Sequence[LabelledCase]) -> dict[str, list[int]]:
    """Places of the cases of each part: all, by medium, by origin; a part that has all cases is left out."""
    parts: dict[str, list[int]] = {ALL: list(range(len(cases)))}
    for place, case in enumerate(cases):
        parts.setdefault(f"medium: {medium_of(case)}", []).append(place)
        parts.setdefault(f"origin: {case.provenance.get('origin', 'not stated')}", []).append(place)
    return {name: parts[name] for name in parts if name == ALL or len(parts[name]) < len(cases)}


def measure_parts(
    cases: Sequence[LabelledCase], predictors: Sequence[tuple[str, Sequence[Answer]]]
) -> dict[str, list[PartFigures]]:
    """The figures of each predictor on each part of the cases, in the order of the predictors."""
    return {
        part: [
            measure_part(part, name, [cases[place] for place in places], [answers[place] for place in places])
            for name, answers in predictors
        ]
        for part, places in parts_of(cases).items()
    }


def measure_part(part: str, predictor: str, cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> PartFigures:
    """The figures of one predictor on one part of the cases."""
    totals = Totals([case.group for case in cases])
    found: dict[str, Estimate] = {}
    causes: tuple[CauseFigures, ...] = ()
    for axis in AXES:
        rows = _Axis(axis, cases, answers, totals)
        if rows.cases:
            found |= rows.estimates()
            causes = rows.by_class() if axis == "cause" else causes
    found |= _of_doubt(cases, answers, totals)
    found |= _of_beginnings(cases, answers, totals)
    return PartFigures(
        part=part,
        predictor=predictor,
        cases=len(cases),
        sources=totals.groups,
        figures={name: found[name] for name in TITLES if name in found and found[name].cases},
        causes=causes,
    )


class _Axis:
    """Labels of one axis as masks over the cases, and the figures of them."""

    def __init__(self, axis: str, cases: Sequence[LabelledCase], answers: Sequence[Answer], totals: Totals) -> None:
        self.axis, self._totals = axis, totals
        self._counted = np.array([has_certain_label(case, axis) for case in cases], dtype=np.bool_)
        self.cases = int(self._counted.sum())
        self._truth = np.array([str(case.labels.best[axis]) for case in cases], dtype=object)
        self._right = np.array(
            [answer.labels[axis] in case.labels.allowed[axis] for case, answer in zip(cases, answers, strict=True)],
            dtype=np.bool_,
        )
        given = np.array([answer.labels[axis] for answer in answers], dtype=object)
        # An answer that experts could defend counts as the best label.
        self._given = np.where(self._right, self._truth, given)
        self._decidable = np.array([is_decidable(case) for case in cases], dtype=np.bool_)
        self._codes = sorted(set(self._truth[self._counted]))

    def estimates(self) -> dict[str, Estimate]:
        """Accuracy and macro averages over the classes that occur; of the side, accuracy where it is decidable."""
        recalls, f1s = [], []
        for code in self._codes:
            there, predicted, hits = self._sums(code)
            recalls.append(divided(hits, there))
            f1s.append(np.where(there > 0, divided(2 * hits, there + predicted), np.nan))
        found = {
            f"{self.axis}.right": self._totals.ratio(self._right, self._counted),
            f"{self.axis}.macro_f1": estimate(_mean(f1s), self.cases),
            f"{self.axis}.macro_recall": estimate(_mean(recalls), self.cases),
        }
        if self.axis == "side":
            found["side.decidable"] = self._totals.ratio(self._right, self._counted & self._decidable)
        return found

    def by_class(self) -> tuple[CauseFigures, ...]:
        """Recall and precision of each class."""
        rows = []
        for code in self._codes:
            of_code = self._counted & (self._truth == code)
            _, predicted, hits = self._sums(code)
            rows.append(
                CauseFigures(
                    code=code,
                    cases=int(of_code.sum()),
                    sources=len(set(self._totals.codes[of_code])),
                    recall=self._totals.ratio(self._right, of_code),
                    precision=float(divided(hits, predicted)[0]),
                )
            )
        return tuple(rows)

    def _sums(self, code: str) -> tuple[Floats, Floats, Floats]:
        there, given = self._counted & (self._truth == code), self._counted & (self._given == code)
        return self._totals.of(there), self._totals.of(given), self._totals.of(there & given)


def _mean(rows: Sequence[Floats]) -> Floats:
    """Column means over the numbers."""
    table = np.vstack(rows)
    return divided(np.nansum(table, axis=0), (~np.isnan(table)).sum(axis=0).astype(np.float64))


def _of_doubt(cases: Sequence[LabelledCase], answers: Sequence[Answer], totals: Totals) -> dict[str, Estimate]:
    """Coverage and calibration of the side."""
    counted = np.array([has_certain_label(case, "side") for case in cases], dtype=np.bool_)
    right = np.array(
        [one.labels["side"] in case.labels.allowed["side"] for case, one in zip(cases, answers, strict=True)]
    )
    confidence = np.array([answer.confidence for answer in answers])
    answered = np.array([not answer.abstained for answer in answers])
    given = np.array([answer.labels["side"] for answer in answers], dtype=object)
    found = {
        "answered": totals.ratio(answered, counted),
        "right_when_answered": totals.ratio(right, counted & answered),
        "ece": estimate(totals.calibration_errors(confidence, right, counted), int(counted.sum())),
    }
    for side in taxonomy.load().sides:
        of_side = counted & (given == side)
        found[f"{side}.right"] = totals.ratio(right, of_side)
        found[f"{side}.confidence"] = totals.ratio(confidence, of_side)
        found[f"{side}.ece"] = estimate(totals.calibration_errors(confidence, right, of_side), int(of_side.sum()))
    return found


def _of_beginnings(cases: Sequence[LabelledCase], answers: Sequence[Answer], totals: Totals) -> dict[str, Estimate]:
    """Where the failure began: root rank, and the lines given as its beginning."""
    pairs = list(zip(cases, answers, strict=True))
    with_rank = np.array([case.labels.root_rank is not None and bool(case.raw.streams) for case in cases])
    with_line = np.array([bool(case.labels.root_line) for case in cases])
    many = np.array([is_of_many_ranks(case) for case in cases])
    rank = np.array([answer.rank == case.labels.root_rank for case, answer in pairs])
    first = np.array([_has_root_line(case, answer.initiating[:1]) for case, answer in pairs])
    among = np.array([_has_root_line(case, answer.initiating) for case, answer in pairs])
    lines = np.array([float(len(answer.initiating)) for answer in answers])
    return {
        "root_rank": totals.ratio(rank, with_rank),
        "first_line": totals.ratio(first, with_line),
        "any_line": totals.ratio(among, with_line),
        "initiating_lines": totals.ratio(lines, with_line),
        "many_ranks.root_rank": totals.ratio(rank, with_rank & many),
        "many_ranks.first_line": totals.ratio(first, with_line & many),
    }


def _has_root_line(case: LabelledCase, shown: Sequence[str]) -> bool:
    return bool(case.labels.root_line) and same_line(str(case.labels.root_line), shown)
