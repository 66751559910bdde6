"""The probability that a resubmit helps, from counted outcomes and a prior."""

from functools import lru_cache
from math import exp, lgamma, log, log1p

from service.recommend.facts import Tally


def mean(tally: Tally, prior: float, weight: float) -> float:
    """The mean of the Beta posterior; `prior` has the weight of `weight` outcomes."""
    return (weight * prior + tally.helped) / (weight + tally.helped + tally.failed)


@lru_cache(maxsize=4096)
def below(helped: int, failed: int, floor: float) -> float:
    """P(rate < floor) with a uniform prior after `helped` and `failed` outcomes: Beta(helped + 1, failed + 1).

    For integer counts the cumulative Beta distribution is a binomial tail: P(Bin(n + 1, floor) > helped).
    """
    if not 0 < floor < 1:
        return 0.0 if floor <= 0 else 1.0
    tries, hit, miss = helped + failed + 1, log(floor), log1p(-floor)
    # By logarithms: the binomial coefficients of some thousand outcomes are beyond a float.
    tail = (
        exp(lgamma(tries + 1) - lgamma(hits + 1) - lgamma(tries - hits + 1) + hits * hit + (tries - hits) * miss)
        for hits in range(helped + 1, tries + 1)
    )
    return min(1.0, sum(tail))
