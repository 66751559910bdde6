"""Failure rates and their intervals."""

import random

import pytest

from service.goodput import figures


def test_a_rate_has_the_exact_poisson_interval() -> None:
    found = figures.failure_rate(10, 1_000.0)
    assert found is not None
    # Garwood's limits for 10 events: 4.795 and 18.390.
    assert found.value == 0.01
    assert found.low == pytest.approx(0.004795, abs=1e-6)
    assert found.high == pytest.approx(0.018390, abs=1e-6)


def test_without_failures_there_is_an_upper_limit_but_no_mean_time() -> None:
    found = figures.failure_rate(0, 100.0)
    assert found is not None
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(0.0369, abs=1e-4)
    assert figures.mean_time(found) is None
    assert figures.failure_rate(3, 0.0) is None


def test_the_mean_time_to_failure_falls_with_the_number_of_nodes() -> None:
    # Kokolis et al. 2024: 6.5 failures per 1,000 node-days are 1.8 hours between failures at 16,384 GPUs.
    per_day = figures.failure_rate(6_500, 1_000_000.0)
    found = figures.mean_time(per_day, 16_384 / 8 / 24)
    assert found is not None
    assert found.value == pytest.approx(1.8, abs=0.01)
    assert found.high is not None
    assert found.low < found.value < found.high


def test_counts_in_clusters_widen_the_interval() -> None:
    spread = figures.dispersion([0, 0, 12, 0, 0, 0, 12, 0], [10.0] * 8)
    assert spread == pytest.approx((2 * 9**2 / 3 + 6 * 3**2 / 3) / 7)  # three are expected a day
    wide, narrow = figures.failure_rate(24, 80.0, spread), figures.failure_rate(24, 80.0)
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low
    assert wide.high is not None
    assert narrow.high is not None
    assert wide.high > narrow.high
    assert figures.dispersion([1] * 8, [10.0] * 8) == 1.0
    assert figures.dispersion([5, 0], [1.0, 1.0]) == 1.0


@pytest.mark.parametrize("cluster", [1, 4])
def test_the_interval_covers_the_true_rate(cluster: int) -> None:
    """Days of 20 node-days with 0.1 failures per node-day that come `cluster` at a time."""
    rng, covered, rounds = random.Random(5), 0, 400
    for _ in range(rounds):
        counts = [cluster * _poisson(rng, 2.0 / cluster) for _ in range(28)]
        found = figures.failure_rate(sum(counts), 560.0, figures.dispersion(counts, [20.0] * 28))
        assert found is not None
        assert found.high is not None
        covered += found.low <= 0.1 <= found.high
    assert covered / rounds >= 0.91


def _poisson(rng: random.Random, mean: float) -> int:
    at, count = rng.expovariate(1.0), 0
    while at < mean:
        at, count = at + rng.expovariate(1.0), count + 1
    return count
