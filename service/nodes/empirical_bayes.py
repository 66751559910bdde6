"""Failure rates of nodes relative to their exposure: empirical Bayes with Gamma and Poisson distributions. Pure.

The failures of a node are Poisson distributed with rate x exposure; the rates of a cluster's nodes are Gamma
distributed, with the cluster's rate as mean and a shape fitted to the variation between nodes. The rate ratio of a
node is then Gamma(shape + failures, shape + rate x exposure): near 1 with little data, its own rate with much data.
Counts are weighted (a share of a failure, by the confidence of its verdict), which makes it a quasi-likelihood.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LEAST_SHAPE: Final = 0.1
MOST_SHAPE: Final = 50.0
# Initial values: the published rate of a research cluster (arXiv 2410.21680: 6.5 failures per 1,000 node-days), and
# nodes that vary widely.
START_RATE: Final = 6.5 / 1_000 / 24
START_SHAPE: Final = 1.0
# The weight of the published rate, in node-hours of the cluster.
START_HOURS: Final = 2_000.0
_LOW, _HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Prior:
    """A cluster's failures per node-hour (`rate` > 0) and the shape of the Gamma distribution over its nodes."""

    rate: float = START_RATE
    shape: float = START_SHAPE


@dataclass(frozen=True, slots=True)
class Ratio:
    """The rate of a node relative to its cluster: posterior mean and 90 % credible interval."""

    mean: float
    low: float
    high: float


def ratio(failures: float, exposure_h: float, prior: Prior) -> Ratio:
    """The rate ratio from a node's weighted failures and node-hours."""
    from scipy.special import gammaincinv  # noqa: PLC0415 - a tenth of the time of a start, and few commands ask for it

    shape = prior.shape + max(0.0, failures)
    scale = prior.shape + prior.rate * max(0.0, exposure_h)
    return Ratio(shape / scale, float(gammaincinv(shape, _LOW)) / scale, float(gammaincinv(shape, _HIGH)) / scale)


def fit(nodes: Sequence[tuple[float, float]]) -> Prior:
    """The prior of a cluster from (weighted failures, exposure in node-hours) of its nodes.

    The rate is that of the fleet, shrunk a little towards the published one; the shape maximizes the negative binomial
    likelihood (golden-section search on its logarithm).
    """
    used = [(max(0.0, failures), hours) for failures, hours in nodes if hours > 0]
    total = sum(hours for _, hours in used)
    rate = (sum(failures for failures, _ in used) + START_RATE * START_HOURS) / (total + START_HOURS)
    if len(used) < 2:  # noqa: PLR2004 - one node does not differ from itself
        return Prior(rate, START_SHAPE)

    def negative_log_posterior(log_shape: float) -> float:
        shape = math.exp(log_shape)
        return -sum(_likelihood(failures, rate * hours, shape) for failures, hours in used) - _vague(log_shape)

    low, high = math.log(LEAST_SHAPE), math.log(MOST_SHAPE)
    golden = (math.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = negative_log_posterior(left), negative_log_posterior(right)
    for _ in range(30):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = negative_log_posterior(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = negative_log_posterior(right)
    return Prior(rate, math.exp((low + high) / 2))


def _likelihood(failures: float, expected: float, shape: float) -> float:
    """The logarithm of the negative binomial density, without constant terms."""
    return (
        math.lgamma(shape + failures)
        - math.lgamma(shape)
        + shape * math.log(shape)
        - (shape + failures) * math.log(shape + expected)
    )


def _vague(log_shape: float) -> float:
    """A weak prior on the shape: in small fleets it stays near the initial value."""
    return -0.5 * (log_shape - math.log(START_SHAPE)) ** 2


def decayed(days_ago: float, half_life_days: float) -> float:
    """The decayed weight of a count after some days; dates in the future (a wrong clock) count as today."""
    return float(0.5 ** (max(0.0, days_ago) / half_life_days))
