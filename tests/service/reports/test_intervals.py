import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reports import intervals


def test_wilson_as_published() -> None:
    found = intervals.share(38, 40)
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (0.835, 0.986)
    assert intervals.share(0, 0) is None


@given(st.integers(0, 10_000), st.integers(1, 10_000), st.floats(1, 50))
def test_a_share_lies_in_its_interval_and_that_in_0_to_1(count: int, more: int, effect: float) -> None:
    found, plain = intervals.share(count, count + more, effect), intervals.share(count, count + more)
    assert found is not None
    assert plain is not None
    rounding = 1e-12  # an effect just above 1 widens an interval by less than a float can show
    assert 0 <= found.low <= plain.low + rounding
    assert plain.low <= found.value <= plain.high <= found.high + rounding
    assert found.high <= 1


def test_a_sum_of_few_large_amounts_has_a_wider_interval_than_of_many_small_ones() -> None:
    assert intervals.total([1.0] * 100).high < intervals.total([100.0]).high
    assert intervals.total([0.0, 0.0]) == intervals.total([]) == intervals.Interval(0, 0, 0)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40))
def test_a_sum_lies_in_its_interval_whatever_the_order(amounts: list[float]) -> None:
    found = intervals.total(amounts)
    assert 0 <= found.low <= found.value <= found.high < float("inf")
    assert intervals.total(amounts[::-1]) == found


@pytest.mark.parametrize("failures", [10, 100])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1.5, 2.0])
def test_the_interval_of_gpu_hours_covers_the_expected_sum(failures: int, spread: float) -> None:
    """Weeks of a Poisson number of failures, each with a log-normal loss (the tail is heavy at a spread of 2)."""
    rng, weeks = np.random.default_rng(5), 600
    expected = failures * np.exp(spread**2 / 2)
    covered = 0
    for _ in range(weeks):
        found = intervals.total(list(rng.lognormal(0, spread, rng.poisson(failures))))
        covered += found.low <= expected <= found.high
    assert covered / weeks >= 0.93


def test_two_shares_differ_if_the_interval_of_the_difference_excludes_zero() -> None:
    assert intervals.differs(intervals.share(90, 1000), intervals.share(160, 4000)) == 1
    assert intervals.differs(intervals.share(5, 1000), intervals.share(160, 4000)) == -1
    assert intervals.differs(intervals.share(42, 1000), intervals.share(160, 4000)) == 0
    assert intervals.differs(None, intervals.share(1, 2)) == 0
