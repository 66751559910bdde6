"""Recalibration of the confidence on audited failures: Platt scaling with a Gaussian prior around "no change".

It counts only if confidences of failures that it has not seen become clearly better: a few dozen audits can't tell a
small error of the confidence from chance, and a calibration that follows chance makes confidences worse.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

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


def fit(points: Sequence[tuple[float, bool]]) -> SiteCalibration:
    """The calibration of pairs of confidence and whether the side is right; none where it would not clearly help."""
    wrong = sum(not right for _, right in points)
    if len(points) < LEAST_CASES or wrong < LEAST_WRONG:
        return SiteCalibration()
    odds = np.array([log_odds(confidence) for confidence, _ in points])
    right = np.array([correct for _, correct in points], float)
    if not _helps(odds, right):
        return SiteCalibration()
    slope, intercept = line(odds, right)
    return SiteCalibration(float(f"{slope:.5g}"), float(f"{intercept:.5g}"), len(points))


def _helps(odds: Any, right: Any) -> bool:
    """Whether the line of the other folds makes the log loss of a fold clearly smaller."""
    folds = np.arange(len(odds)) % FOLDS
    gained = np.zeros(len(odds))
    for fold in range(FOLDS):
        own = folds == fold
        slope, intercept = line(odds[~own], right[~own])
        gained[own] = _losses(odds[own], right[own]) - _losses(slope * odds[own] + intercept, right[own])
    return bool(gained.mean() > STANDARD_ERRORS * gained.std() / len(gained) ** 0.5)


def _losses(scores: Any, right: Any) -> Any:
    """The log loss of each failure."""
    return np.logaddexp(0.0, scores) - right * scores


def line(odds: Any, right: Any) -> tuple[float, float]:
    """Slope and intercept of the line over the log odds, with a prior around "no change"."""
    from scipy.optimize import minimize  # noqa: PLC0415 - for fitting only; it would double the time of a start

    def objective(parameters: Any) -> float:
        slope, intercept = parameters
        loss = float(_losses(slope * odds + intercept, right).sum())
        loss += ((slope - 1.0) / SLOPE_DEVIATION) ** 2 / 2 + (intercept / INTERCEPT_DEVIATION) ** 2 / 2
        return float(loss)

    slope, intercept = minimize(objective, np.array([1.0, 0.0]), method="BFGS").x
    return max(0.0, float(slope)), float(intercept)
