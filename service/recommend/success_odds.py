"""The probability that a resubmit helps, from counted outcomes and a prior."""

from functools import lru_cache
from math import comb

from service.recommend.facts import Tally


def mean(tally: Tally, prior: float, weight: float) -> float:
    """The mean of the Beta posterior; `prior` has the weight of `weight` outcomes."""
    return (weight * prior + tally.helped) / (weight + tally.helped + tally.failed)


@lru_cache(maxsize=4096)
def below(helped: int, failed: int, floor: float) -> float:
    """P(rate < floor) with a uniform prior after `helped` and `failed` outcomes: Beta(helped + 1, failed + 1).

    For integer counts the cumulative Beta distribution is a binomial tail: P(Bin(n + 1, floor) > helped).
    """
    tries = helped + failed + 1
    tail = (comb(tries, hits) * floor**hits * (1 - floor) ** (tries - hits) for hits in range(helped + 1, tries + 1))
    return min(1.0, sum(tail))
