"""Recalibration of the confidence on audited failures: Platt scaling with a Gaussian prior around "no change".

It counts only if confidences of failures that it has not seen become clearly better: a few dozen audits can't tell a
small error of the confidence from chance, and a calibration that follows chance makes confidences worse. An audit draws
more of small strata, such as failures that people had corrected before: each failure counts as what it stands for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.model.linear_model import Doubles
from classifiers.model.site.layer import SiteCalibration, log_odds

# Judgement: fewer audited failures, or fewer wrong ones among them, do not change the confidence.
LEAST_CASES: Final = 40
LEAST_WRONG: Final = 3
# Judgement: standard deviations of slope and intercept under the prior.
SLOPE_DEVIATION: Final = 0.5
INTERCEPT_DEVIATION: Final = 1.0
FOLDS: Final = 5
# Judgement: standard errors by which the log loss under cross-fitting has to fall, a one-sided test at 2.5 %.
STANDARD_ERRORS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Point:
    """An audited failure.

    Attributes:
        confidence: of its side, 0..1.
        right: whether the side is right.
        group: failures of one group come from one fault, and are no independent evidence; empty: a group of its own.
        weight: the number of failures that it stands for; only the ratios of weights count.
    """

    confidence: float
    right: bool
    group: str = ""
    weight: float = 1.0


def fit(points: Sequence[Point]) -> SiteCalibration:
    """The calibration of audited failures; none where it would not clearly help."""
    wrong = sum(not point.right for point in points)
    if len(points) < LEAST_CASES or wrong < LEAST_WRONG:
        return SiteCalibration()
    odds = np.array([log_odds(point.confidence) for point in points])
    right = np.array([point.right for point in points], float)
    weights = effective(points)
    names = [point.group or f"alone {number}" for number, point in enumerate(points)]
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    if not _helps(odds, right, weights, np.array([places[name] for name in names])):
        return SiteCalibration()
    slope, intercept = line(odds, right, weights)
    return SiteCalibration(float(f"{slope:.5g}"), float(f"{intercept:.5g}"), len(points))


def effective(points: Sequence[Point]) -> Doubles:
    """The weights, scaled so that their sum is the effective number of points (Kish 1965)."""
    weights = np.array([point.weight for point in points], float)
    scaled: Doubles = weights * weights.sum() / (weights**2).sum()
    return scaled


def _helps(odds: Doubles, right: Doubles, weights: Doubles, groups: NDArray[np.int64]) -> bool:
    """Whether the line of the other folds makes the log loss of a fold clearly smaller; groups stay together."""
    folds = groups % FOLDS
    gained = np.zeros(len(odds))
    for fold in range(FOLDS):
        own = folds == fold
        if own.any() and not own.all():
            slope, intercept = line(odds[~own], right[~own], weights[~own])
            gained[own] = _losses(odds[own], right[own]) - _losses(slope * odds[own] + intercept, right[own])
    mean = float((weights * gained).sum() / weights.sum())
    of_groups = np.bincount(groups, weights=weights * (gained - mean))
    return bool(mean > STANDARD_ERRORS * (of_groups**2).sum() ** 0.5 / weights.sum())


def _losses(scores: Doubles, right: Doubles) -> Doubles:
    """The log loss of each failure."""
    losses: Doubles = np.logaddexp(0.0, scores) - right * scores
    return losses


def line(odds: Doubles, right: Doubles, weights: Doubles) -> tuple[float, float]:
    """Slope and intercept of the line over the log odds, with a prior around "no change"."""
    from scipy.optimize import minimize  # noqa: PLC0415 - for fitting only; it would double the time of a start

    def objective(parameters: Doubles) -> float:
        slope, intercept = parameters
        loss = float((weights * _losses(slope * odds + intercept, right)).sum())
        loss += ((slope - 1.0) / SLOPE_DEVIATION) ** 2 / 2 + (intercept / INTERCEPT_DEVIATION) ** 2 / 2
        return float(loss)

    slope, intercept = minimize(objective, np.array([1.0, 0.0]), method="BFGS").x
    return max(0.0, float(slope)), float(intercept)
