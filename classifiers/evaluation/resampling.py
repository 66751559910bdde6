"""Bootstrap over groups of cases: whole groups are drawn, since the cases of one group are alike.

Groups are sources, kinds of failure or fingerprints. All intervals of an evaluation rest on these draws (Efron and
Tibshirani 1993, chapter 16).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers.evaluation.metrics import BINS

RESAMPLES: Final = 1_000
INTERVAL: Final = (2.5, 97.5)  # percentiles

Floats = NDArray[np.float64]
Values = Sequence[float] | Sequence[bool] | Floats | NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval and the number of cases that it is computed from.

    `value`, `low` and `high` are not numbers without cases; the interval needs at least two groups.
    """

    value: float
    low: float
    high: float
    cases: int


class Totals:
    """Sums over cases: of the cases as they are, then of each resample of their groups.

    Args:
        groups: the group of each case.
        seed: of the draws; the same groups and seed give the same draws.
        resamples: number of draws.
    """

    def __init__(self, groups: Sequence[str], seed: int = 0, resamples: int = RESAMPLES) -> None:
        names, self.codes = np.unique(np.array(groups, dtype=object).astype(str), return_inverse=True)
        self.groups = len(names)
        rng = np.random.default_rng(seed)
        share = np.full(self.groups, 1 / max(1, self.groups))
        drawn = rng.multinomial(self.groups, share, size=resamples if self.groups > 1 else 0)
        self._draws = np.vstack([np.ones((1, self.groups)), drawn]).astype(np.float32)

    def of(self, values: Values) -> Floats:
        """The sum of one value of each case; the first sum is that of the cases as they are."""
        by_group = np.bincount(self.codes, weights=np.asarray(values, dtype=np.float64), minlength=self.groups)
        return np.asarray(self._draws @ by_group, dtype=np.float64)

    def means(self, values: Values, counted: Values) -> Floats:
        """The means of the values of counted cases; not a number in draws without a counted case."""
        mask = np.asarray(counted, dtype=np.bool_)
        return divided(self.of(np.where(mask, values, 0.0)), self.of(mask))

    def ratio(self, values: Values, counted: Values) -> Estimate:
        """The mean of the values of counted cases, with its interval."""
        return estimate(self.means(values, counted), int(np.sum(counted)))

    def calibration_errors(self, confidence: Floats, right: Values, counted: NDArray[np.bool_]) -> Floats:
        """Mean distance of confidence and share right over bins of confidence, by their counted cases."""
        places = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
        excess = confidence - np.asarray(right, dtype=np.float64)
        distance = sum(
            np.abs(self.of(np.where(inside, excess, 0.0)))
            for inside in (counted & (places == number) for number in range(BINS))
        )
        return divided(np.asarray(distance), self.of(counted))


def divided(above: Floats, below: Floats) -> Floats:
    """Quotients; not a number where there is nothing to divide by."""
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def interval(values: Floats) -> tuple[float, float]:
    """The 95 % interval of draws; not a number where no draw is a number."""
    drawn = values[~np.isnan(values)]
    low, high = np.percentile(drawn, INTERVAL) if len(drawn) else (np.nan, np.nan)
    return float(low), float(high)


def estimate(values: Floats, cases: int) -> Estimate:
    """The first value with the interval of the others."""
    return Estimate(float(values[0]), *interval(values[1:]), cases)
