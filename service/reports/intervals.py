"""Uncertainty of figures: 95 % intervals.

Wilson 1927 for shares, Newcombe 1998 (method 10) for the difference of two shares; a sum of GPU-hours is modelled as a
compound Poisson sum of log-normal amounts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

Z = 1.959963984540054  # two-sided 95 %
_LEAST = 0.01  # of the mean amount
_PRIOR_SD, _PRIOR_WEIGHT = 1.0, 1.0  # of the logarithm of an amount, as of one observation more
_MOST_VARIANCE = 30.0  # of the logarithm, so that one or two failures do not overflow
_DRAWS, _SEED = 2_000, 20_030


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


def share(count: int, of: int, design_effect: float = 1.0) -> Interval | None:
    """Wilson's interval of a share; None if `of` is 0. Clustered counts have a `design_effect` above 1 (Kish 1965)."""
    return None if of <= 0 else share_of(count / of, of / design_effect)


def share_of(p: float, size: float) -> Interval:
    """Wilson's interval of a share `p` of `size` > 0 cases."""
    middle = (p + Z * Z / (2 * size)) / (1 + Z * Z / size)
    half = Z * sqrt(p * (1 - p) / size + Z * Z / (4 * size * size)) / (1 + Z * Z / size)
    # Rounding must not put a share of 0 or 1 outside its own interval.
    return Interval(p, min(p, max(middle - half, 0.0)), max(p, min(middle + half, 1.0)))


def total(amounts: Sequence[float]) -> Interval:
    """The interval of a sum of GPU-hours: a Poisson number of failures that lose log-normal amounts.

    Sampled from the fiducial distribution of the log-normal mean (Krishnamoorthy and Mathew 2003) times that of the
    number of failures, so that few failures with heavy tails get a wide interval upwards. The interval is never
    narrower than that of a compound Poisson sum, for amounts that are not log-normal. Amounts of 0 are left out.
    """
    hours = np.sort(np.asarray([amount for amount in amounts if amount > 0], dtype=float))
    count, value = len(hours), float(hours.sum())
    if not count:
        return Interval(0.0, 0.0, 0.0)
    outer = from_sums(value, float((hours * hours).sum()))
    # Amounts far below the mean do not matter for the sum, but they would widen the fitted distribution.
    logs = np.log(np.maximum(hours, _LEAST * value / count))
    rng = np.random.default_rng(_SEED)
    squares = _PRIOR_WEIGHT * _PRIOR_SD**2 + float(((logs - logs.mean()) ** 2).sum())
    spread = np.minimum(squares / rng.chisquare(_PRIOR_WEIGHT + count - 1, _DRAWS), _MOST_VARIANCE)
    mean = logs.mean() + np.sqrt(spread / count) * rng.standard_normal(_DRAWS) + spread / 2
    low, high = np.quantile(rng.gamma(count + 0.5, 1.0, _DRAWS) * np.exp(mean), (0.025, 0.975))
    return Interval(value, min(float(low), outer.low), max(float(high), outer.high))


def from_sums(amount: float, squares: float) -> Interval:
    """The interval of a sum of many amounts on the log scale, `squares` being the sum of their squares."""
    if amount <= 0:
        return Interval(max(amount, 0.0), 0.0, 0.0)
    relative = sqrt(max(squares, 0.0)) / amount
    return Interval(amount, amount * exp(-Z * relative), amount * exp(Z * relative))


def differs(one: Interval | None, other: Interval | None) -> int:
    """1 if the first share is significantly larger, -1 if smaller: the interval of the difference excludes zero."""
    if one is None or other is None:
        return 0
    difference = one.value - other.value
    if difference > sqrt((one.value - one.low) ** 2 + (other.high - other.value) ** 2):
        return 1
    if -difference > sqrt((one.high - one.value) ** 2 + (other.value - other.low) ** 2):
        return -1
    return 0
