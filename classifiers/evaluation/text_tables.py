"""Figures of an evaluation as plain text and as JSON values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from classifiers.data.labelled_cases import WEAK_CLASS
from classifiers.evaluation.baselines import BUGGY_CODE
from classifiers.evaluation.figures import ALL, TITLES, PartFigures
from classifiers.evaluation.resampling import Estimate

SCHEMA: Final = "faultline-evaluation/1"
_DIGITS: Final = 4
# The figures that the text shows for parts of the cases; JSON and report have all.
_OF_PARTS: Final = (
    "side.right", "side.macro_recall", "cause.right", "cause.macro_recall", "category.right", "symptom.right",
    "decidable", "answered", "root_rank", "first_line", "initiating_lines",
)  # fmt: skip
_NAME, _OWN, _BASELINE = 46, 30, 21  # characters, widths of the columns


def shown(figure: Estimate | None) -> str:
    """A figure with its interval: `0.951 [0.920, 0.975]`."""
    if figure is None or math.isnan(figure.value):
        return "-"
    interval = "" if math.isnan(figure.low) else f" [{figure.low:.3f}, {figure.high:.3f}]"
    return f"{figure.value:.3f}{interval}"


def constant_note(predictors: Sequence[PartFigures]) -> str | None:
    """The sentence on what a constant answer reaches; None where no side is labelled."""
    constant = next(
        (predictor.figures.get("side.right") for predictor in predictors if predictor.predictor == BUGGY_CODE), None
    )
    own = predictors[0].figures.get("side.right")
    if constant is None or own is None:
        return None
    return (
        f'A classifier that answers "user side, buggy code" to everything is right on the side in {constant.value:.3f} '
        f"of these cases; {predictors[0].predictor} is right in {own.value:.3f}. Macro averages and recall by cause "
        "show more than the share that is right."
    )


def text(parts: Mapping[str, Sequence[PartFigures]]) -> str:
    """All parts as plain tables; the first predictor with intervals, recall by cause for all cases."""
    lines: list[str] = []
    for part, predictors in parts.items():
        lines += [*_table(predictors), ""]
        note = constant_note(predictors)
        if part == ALL:
            lines += [*([note, ""] if note else []), *([*_causes(predictors[0]), ""] if predictors[0].causes else [])]
    lines.append("Brackets: 95 % intervals, bootstrap over sources (the groups of the cases).")
    return "\n".join(lines)


def _table(predictors: Sequence[PartFigures]) -> list[str]:
    own, *others = predictors
    title = f"{own.part}, {own.cases} cases of {own.sources} sources"
    lines = [f"{title:{_NAME}s}{own.predictor:>{_OWN}s}" + "".join(f"{one.predictor:>{_BASELINE}s}" for one in others)]
    for name, figure in own.figures.items():
        if own.part != ALL and not name.endswith(_OF_PARTS):
            continue
        cells = [_baseline(name, other) for other in others]
        lines.append(f"{_titled(name, figure):{_NAME}s}{shown(figure):>{_OWN}s}" + "".join(cells).rstrip())
    return lines


def _titled(name: str, figure: Estimate) -> str:
    return f"{TITLES[name]}, of {figure.cases}"


def _baseline(name: str, part: PartFigures) -> str:
    """A baseline's figure; only of labels, since it has no confidence of its own and names no lines."""
    figure = part.figures.get(name) if is_of_labels(name) else None
    return f"{'' if figure is None else f'{figure.value:.3f}':>{_BASELINE}s}"


def is_of_labels(name: str) -> bool:
    """Whether a figure is one that a baseline has, too."""
    return name.endswith((".macro_f1", ".macro_recall", ".decidable")) or TITLES[name].endswith(": right")


def _causes(own: PartFigures) -> list[str]:
    lines = [f"{'true cause':14s}{'cases':>8s}{'sources':>9s}{'recall':>26s}{'precision':>11s}"]
    for cause in own.causes:
        few = "  few cases" if cause.cases < WEAK_CLASS else ""
        precision = "-" if math.isnan(cause.precision) else f"{cause.precision:.3f}"
        lines.append(
            f"{cause.code:14s}{cause.cases:8d}{cause.sources:9d}{shown(cause.recall):>26s}{precision:>11s}{few}"
        )
    return lines


def json_figures(parts: Mapping[str, Sequence[PartFigures]]) -> list[dict[str, Any]]:
    """A JSON object for each part: its predictors with figures and recall by cause, numbers or null."""
    return [
        {
            "part": part,
            "cases": predictors[0].cases,
            "sources": predictors[0].sources,
            "predictors": [
                {
                    "name": predictor.predictor,
                    "figures": {name: _estimate(figure) for name, figure in predictor.figures.items()},
                    "causes": {
                        cause.code: {
                            "cases": cause.cases,
                            "sources": cause.sources,
                            "recall": _estimate(cause.recall),
                            "precision": _number(cause.precision),
                        }
                        for cause in predictor.causes
                    },
                }
                for predictor in predictors
            ],
        }
        for part, predictors in parts.items()
    ]


def _estimate(figure: Estimate) -> dict[str, Any]:
    return {
        "value": _number(figure.value),
        "low": _number(figure.low),
        "high": _number(figure.high),
        "cases": figure.cases,
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, _DIGITS)
