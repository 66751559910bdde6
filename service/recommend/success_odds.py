"""How probable it is that a resubmit helps, from counted ends and what is believed before any are known."""

from functools import lru_cache
from math import comb

from service.recommend.facts import Tally


def mean(tally: Tally, prior: float, weight: float) -> float:
    """The mean of the Beta posterior: `prior` weighs as much as `weight` outcomes."""
    return (weight * prior + tally.helped) / (weight + tally.helped + tally.failed)


@lru_cache(maxsize=4096)
def below(helped: int, failed: int, floor: float) -> float:
    """P(rate < floor) of a rate with a uniform prior after `helped` and `failed` ends: Beta(helped + 1, failed + 1).

    For whole counts the Beta distribution's function is a binomial tail: P(Bin(n + 1, floor) > helped).
    """
    tries = helped + failed + 1
    tail = (comb(tries, hits) * floor**hits * (1 - floor) ** (tries - hits) for hits in range(helped + 1, tries + 1))
    return min(1.0, sum(tail))
