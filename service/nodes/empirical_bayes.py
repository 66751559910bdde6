"""How much more often jobs fail on a node than its exposure explains: empirical Bayes, Gamma and Poisson. Pure.

Failures of a node are counted as a Poisson variable with rate x exposure; the rates of a cluster's nodes as Gamma
distributed with the cluster's own rate as mean and a shape fitted to how much the nodes differ. A node's rate ratio is
then Gamma(shape + failures, shape + rate x exposure): near 1 while little is known of it, its own figure once much is.
Counts are weighted (a share of a failure, by the confidence of its verdict), which makes the likelihood a quasi one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from scipy.special import gammaincinv

LEAST_SHAPE: Final = 0.1
MOST_SHAPE: Final = 50.0
# Before anything is known: the published rate of a research cluster (arXiv 2410.21680: 6.5 failures per 1,000
# node-days), nodes that differ widely.
START_RATE: Final = 6.5 / 1_000 / 24
START_SHAPE: Final = 1.0
# The published rate counts as much as so many node-hours of the cluster's own.
START_HOURS: Final = 2_000.0
_LOW, _HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Prior:
    """A cluster's failures per node-hour (`rate` > 0) and the shape of the Gamma distribution over its nodes."""

    rate: float = START_RATE
    shape: float = START_SHAPE


@dataclass(frozen=True, slots=True)
class Ratio:
    """A node's rate against its cluster's: posterior mean and 90 % credible interval."""

    mean: float
    low: float
    high: float


def ratio(blame: float, exposure_h: float, prior: Prior) -> Ratio:
    """What a node's weighted failures and node-hours say of its rate."""
    shape = prior.shape + max(0.0, blame)
    scale = prior.shape + prior.rate * max(0.0, exposure_h)
    return Ratio(shape / scale, float(gammaincinv(shape, _LOW)) / scale, float(gammaincinv(shape, _HIGH)) / scale)


def fit(nodes: Sequence[tuple[float, float]]) -> Prior:
    """The prior of a cluster from (blame, exposure in node-hours) of its nodes.

    The rate is the fleet's own, drawn a little towards the published one; the shape is the most likely one (negative
    binomial likelihood, golden-section search on its logarithm).
    """
    used = [(max(0.0, blame), hours) for blame, hours in nodes if hours > 0]
    total = sum(hours for _, hours in used)
    rate = (sum(blame for blame, _ in used) + START_RATE * START_HOURS) / (total + START_HOURS)
    if len(used) < 2:  # noqa: PLR2004 - one node does not differ from itself
        return Prior(rate, START_SHAPE)

    def surprise(log_shape: float) -> float:
        return -sum(_likelihood(blame, rate * hours, math.exp(log_shape)) for blame, hours in used) - _vague(log_shape)

    low, high = math.log(LEAST_SHAPE), math.log(MOST_SHAPE)
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = surprise(left), surprise(right)
    for _ in range(30):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = surprise(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = surprise(right)
    return Prior(rate, math.exp((low + high) / 2))


def _likelihood(blame: float, expected: float, shape: float) -> float:
    """Log of the negative binomial's density, without what does not depend on the shape."""
    return (
        math.lgamma(shape + blame)
        - math.lgamma(shape)
        + shape * math.log(shape)
        - (shape + blame) * math.log(shape + expected)
    )


def _vague(log_shape: float) -> float:
    """Small fleets say little of the shape: it is then near the start."""
    return -0.5 * (log_shape - math.log(START_SHAPE)) ** 2


def decayed(days_ago: float, half_life_days: float) -> float:
    """What is left of a count after so many days; what lies ahead (a wrong clock) counts as today's."""
    return float(0.5 ** (max(0.0, days_ago) / half_life_days))
