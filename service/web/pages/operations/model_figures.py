"""Figures of the classifier from `faultline-measured/1`: tables and curves. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from classifiers import taxonomy
from service.reports import intervals
from service.web.pages.charts.figures import line

SIDE = 240  # width and height of a chart in chart units
EDGE = 4


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """Figures of one true cause: measured cases and kinds, whether they are few, and the verdicts.

    `right` is the share with the right side, `named` with the right cause; `named_low` and `named_high` are its 95 %
    interval by the number of kinds, since cases of one kind are alike. `instead` is the most common wrong cause.
    """

    code: str
    cases: int
    kinds: int
    weak: bool
    right: float
    named: float
    named_low: float
    named_high: float
    abstained: float
    instead: str | None
    instead_share: float


@dataclass(frozen=True, slots=True)
class ConfidenceBin:
    """Verdicts with a confidence from `low` to `high`: their share of all verdicts, and the share that is right."""

    low: float
    high: float
    share: float
    right: float | None


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Verdicts with at least this confidence: their share of all verdicts, and the share that is right."""

    floor: float
    share: float
    right: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All figures. `confusion[true][predicted]` is the share of verdicts by side; `points` draws the coverage curve."""

    model: str
    data: str
    cases: int
    kinds: int
    threshold: float
    classes: tuple[ClassFigures, ...]
    confusion: Mapping[str, Mapping[str, float]]
    bins: tuple[ConfidenceBin, ...]
    coverage: tuple[CoverageRow, ...]
    points: str

    @property
    def by_weakness(self) -> tuple[ClassFigures, ...]:
        """The causes, those whose cause is least often right first."""
        return tuple(sorted(self.classes, key=lambda one: one.named))

    @property
    def calibration(self) -> str:
        """The chart of calibration as JSON: how many verdicts of a confidence were right."""
        known = [(one.low + one.high) / 2 for one in self.bins if one.right is not None]
        right = [one.right for one in self.bins if one.right is not None]
        series = {"right": right, "confidence": known}
        return line(known, series, titles=("confidence", "share right"), begin=0.4)

    @property
    def answered(self) -> str:
        """The chart of coverage as JSON: how many verdicts are right if only confident ones are given."""
        known = sorted(self.coverage, key=lambda one: one.share)
        titles = ("share answered", "share right")
        return line([one.share for one in known], {"right": [one.right for one in known]}, titles=titles, begin=0.8)


def figures(measured: Mapping[str, Any]) -> Figures:
    """Compute the figures; every kind of failure has the same weight, as in the measurement."""
    causes: Mapping[str, Any] = measured["causes"]
    axes = taxonomy.load()
    total = sum(one["kinds"] for one in causes.values()) or 1
    classes = []
    confusion: dict[str, dict[str, float]] = {side: dict.fromkeys(axes.sides, 0.0) for side in axes.sides}
    weights: dict[str, float] = dict.fromkeys(axes.sides, 0.0)
    edges = measured["bins"]
    shares, rights = [0.0] * (len(edges) - 1), [0.0] * (len(edges) - 1)
    for code, one in causes.items():
        predicted = one["cause"]
        named = intervals.share_of(predicted.get(code, 0.0), max(one["kinds"], 1))
        wrong = next(((name, share) for name, share in predicted.items() if name != code), (None, 0.0))
        classes.append(
            ClassFigures(
                code,
                one["cases"],
                one["kinds"],
                one["weak"],
                one["right"],
                named.value,
                named.low,
                named.high,
                one["abstained"],
                wrong[0],
                wrong[1],
            )
        )
        side = axes.side_of(code)
        weights[side] += one["kinds"]
        for name, share in one["side"].items():
            confusion[side][name] += share * one["kinds"]
        for place, share in enumerate(one["confidence"]):
            shares[place] += share * one["kinds"] / total
            right = one["right_by_confidence"][place]
            rights[place] += share * (right or 0.0) * one["kinds"] / total
    bins = tuple(
        ConfidenceBin(edges[at], edges[at + 1], share, rights[at] / share if share > 0 else None)
        for at, share in enumerate(shares)
    )
    coverage = []
    for at in range(len(shares)):
        answered = sum(shares[at:])
        if answered > 0:
            coverage.append(CoverageRow(edges[at], answered, sum(rights[at:]) / answered))
    return Figures(
        measured["model"],
        measured["data"],
        measured["cases"],
        measured["kinds"],
        measured["threshold"],
        tuple(sorted(classes, key=lambda one: one.code)),
        {
            side: {name: share / (weights[side] or 1.0) for name, share in row.items()}
            for side, row in confusion.items()
        },
        bins,
        tuple(coverage),
        " ".join(f"{_x(one.share)},{_y(one.right)}" for one in coverage),
    )


def _x(share: float) -> float:
    return round(EDGE + share * (SIDE - 2 * EDGE), 1)


def _y(share: float) -> float:
    return round(SIDE - EDGE - share * (SIDE - 2 * EDGE), 1)
