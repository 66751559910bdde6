import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.reports import intervals


def test_wilson_as_published() -> None:
    found = intervals.share(38, 40)
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (0.835, 0.986)
    assert intervals.share(0, 0) is None


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_share_lies_in_its_interval_and_that_in_0_to_1(count: int, more: int) -> None:
    found = intervals.share(count, count + more)
    assert found is not None
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_sum_of_few_large_amounts_has_a_wider_interval_than_of_many_small_ones() -> None:
    assert intervals.total(100, 100 * 1).high < intervals.total(100, 100**2).high


@pytest.mark.parametrize(("failed", "direction"), [(40, None), (42, None), (90, "up"), (5, "down")])
def test_an_arrow_needs_a_significant_change(failed: int, direction: str | None) -> None:
    before = intervals.share(160, 4000)
    assert intervals.change(intervals.share(failed, 1000), before, [0.04, 0.03, 0.05, 0.04]) == direction


def test_no_arrow_within_the_range_of_the_previous_weeks() -> None:
    before = intervals.share(160, 4000)
    assert intervals.change(intervals.share(90, 1000), before, [0.01, 0.12, 0.01, 0.02]) is None
    assert intervals.change(intervals.share(90, 1000), None, []) is None
