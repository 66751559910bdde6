"""Recalibration of the confidence on audited failures: Platt scaling with a Gaussian prior around "no change"."""

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


def fit(points: Sequence[tuple[float, bool]]) -> SiteCalibration:
    """The calibration of pairs of confidence and whether the side is right."""
    wrong = sum(not right for _, right in points)
    if len(points) < LEAST_CASES or wrong < LEAST_WRONG:
        return SiteCalibration()
    from scipy.optimize import minimize  # noqa: PLC0415 - for fitting only; it would double the time of a start

    odds = np.array([log_odds(confidence) for confidence, _ in points])
    right = np.array([correct for _, correct in points], float)

    def objective(parameters: Any) -> float:
        slope, intercept = parameters
        scores = slope * odds + intercept
        loss = float((np.logaddexp(0.0, scores) - right * scores).sum())
        loss += ((slope - 1.0) / SLOPE_DEVIATION) ** 2 / 2 + (intercept / INTERCEPT_DEVIATION) ** 2 / 2
        return float(loss)

    slope, intercept = minimize(objective, np.array([1.0, 0.0]), method="BFGS").x
    return SiteCalibration(float(f"{max(0.0, slope):.5g}"), float(f"{intercept:.5g}"), len(points))
