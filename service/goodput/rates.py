"""Failure rates with 95 % intervals, and the mean time to failure (MTTF) that they imply. Pure.

The number of failures is a Poisson number whose variance is `dispersion` times as large (quasi-Poisson: McCullagh and
Nelder 1989, section 4.5), because failures come in clusters. Intervals are exact ones of the gamma distribution
(Garwood 1936), as in Kokolis et al. 2024.
"""

from collections.abc import Sequence

from scipy.special import gammaincinv

from service.goodput.records import Estimate

_TAIL = 0.025
_LEAST_PARTS = 7  # with fewer days the dispersion is not estimated


def dispersion(counts: Sequence[int], exposures: Sequence[float]) -> float:
    """How much larger than Poisson's the variance of counts is, at least 1 (Pearson's statistic per degree of freedom).

    Args:
        counts: failures of each day.
        exposures: node-days of each day; days without any are left out.
    """
    pairs = [(count, exposure) for count, exposure in zip(counts, exposures, strict=True) if exposure > 0]
    total = sum(exposure for _, exposure in pairs)
    rate = sum(count for count, _ in pairs) / total if total else 0.0
    if len(pairs) < _LEAST_PARTS or rate == 0:
        return 1.0
    pearson = sum((count - rate * exposure) ** 2 / (rate * exposure) for count, exposure in pairs)
    return max(pearson / (len(pairs) - 1), 1.0)


def rate(failures: int, exposure: float, spread: float = 1.0) -> Estimate | None:
    """Failures per unit of exposure; None without exposure."""
    if exposure <= 0:
        return None
    seen = failures / spread
    low = float(gammaincinv(seen, _TAIL)) if failures else 0.0
    high = float(gammaincinv(seen + 1, 1 - _TAIL))
    return Estimate(failures / exposure, low * spread / exposure, high * spread / exposure)


def mean_time(found: Estimate | None, factor: float = 1.0) -> Estimate | None:
    """The mean time between failures at `factor` times a rate; None without a failure, because there is no estimate."""
    if found is None or found.value <= 0 or factor <= 0 or found.high is None:
        return None
    return Estimate(
        1 / (found.value * factor),
        1 / (found.high * factor),
        1 / (found.low * factor) if found.low > 0 else None,
    )
