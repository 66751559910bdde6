"""Figures as people read them."""

import pytest

from service import number_format


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h"), (3661, "1 h 1 min"), (90_000, "1 d 1 h")],
)
def test_spans_have_two_units_at_most(seconds: float, shown: str) -> None:
    assert number_format.span(seconds).replace("\u00a0", " ") == shown


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.04, "<0.1"), (0.5, "0.5"), (24, "24"), (1363.4, "1,363")])
def test_gpu_hours_have_the_digits_that_mean_something(value: float, shown: str) -> None:
    assert number_format.gpu_hours(value) == shown


def test_shares() -> None:
    assert number_format.percent(0.0403) == "4.0\u00a0%"
    assert number_format.percent(None) == "–"


def test_nothing_is_ever_wholly_sure() -> None:
    assert number_format.sureness(0.9999) == "over 99\u00a0%"
    assert number_format.sureness(0.97) == "97\u00a0%"
