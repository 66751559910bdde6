"""Uncertainty of figures: 95 % intervals, and tests for significant changes.

Wilson 1927 for shares, Newcombe 1998 (method 10) for the difference of two shares; a sum of GPU-hours is modelled as a
compound Poisson sum, whose variance is estimated by the sum of squares.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

Z = 1.959963984540054  # two-sided 95 %
Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float


def share(count: int, of: int) -> Interval | None:
    """Wilson's interval of a share; None if `of` is 0."""
    if of <= 0:
        return None
    p = count / of
    middle = (p + Z * Z / (2 * of)) / (1 + Z * Z / of)
    half = Z * sqrt(p * (1 - p) / of + Z * Z / (4 * of * of)) / (1 + Z * Z / of)
    # Rounding must not put a share of 0 or 1 outside its own interval.
    return Interval(p, min(p, max(middle - half, 0.0)), max(p, min(middle + half, 1.0)))


def total(amount: float, squares: float) -> Interval:
    """The interval of a sum of independent amounts, `squares` being the sum of their squares."""
    half = Z * sqrt(max(squares, 0.0))
    return Interval(amount, max(amount - half, 0.0), amount + half)


def change(now: Interval | None, before: Interval | None, earlier: Sequence[float]) -> Direction | None:
    """The direction of a significant change; None if the change is not significant.

    Two conditions, since failures are clustered and an interval of counts alone gives false alarms: the 95 % interval
    of the difference excludes zero, and the figure lies outside the range of `earlier`, the previous weeks.
    """
    if now is None or before is None or not earlier:
        return None
    difference = now.value - before.value
    low = difference - sqrt((now.value - now.low) ** 2 + (before.high - before.value) ** 2)
    high = difference + sqrt((now.high - now.value) ** 2 + (before.value - before.low) ** 2)
    if low > 0 and now.value > max(earlier):
        return "up"
    if high < 0 and now.value < min(earlier):
        return "down"
    return None
