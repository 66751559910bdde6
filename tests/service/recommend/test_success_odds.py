"""Probabilities from counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from service.recommend import success_odds
from service.recommend.facts import Tally


@given(st.integers(0, 80), st.integers(0, 80), st.floats(0.01, 0.99))
def test_the_tail_is_the_beta_distributions(helped: int, failed: int, floor: float) -> None:
    assert success_odds.below(helped, failed, floor) == pytest.approx(beta(helped + 1, failed + 1).cdf(floor), abs=1e-9)


@pytest.mark.parametrize(
    ("helped", "failed", "floor"),
    [(600, 600, 0.5), (3_000, 3_000, 0.2), (4_650, 350, 0.93), (20, 5_000, 0.005), (2_000, 0, 1.0), (0, 2_000, 0.0)],
)
def test_thousands_of_outcomes_have_a_probability_too(helped: int, failed: int, floor: float) -> None:
    assert success_odds.below(helped, failed, floor) == pytest.approx(beta(helped + 1, failed + 1).cdf(floor), abs=1e-9)


def test_the_prior_has_the_weight_of_its_outcomes() -> None:
    assert success_odds.mean(Tally(), 0.8, 10) == pytest.approx(0.8)
    assert success_odds.mean(Tally(0, 10), 0.8, 10) == pytest.approx(0.4)
