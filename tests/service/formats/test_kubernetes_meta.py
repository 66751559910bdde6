from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.kubernetes.meta import quantity


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (8, 8),
        ("8", 8),
        ("1500m", 1),
        ("16Gi", 16 * 2**30),
        ("1.5G", 1_500_000_000),
        ("2k", 2000),
        (None, None),
        (True, None),
        ("", None),
        ("-1", None),
        ("1e3", None),
        ("lots", None),
        ("9999999999999999Pi", None),
    ],
)
def test_quantities(value: Any, whole: int | None) -> None:
    assert quantity(value) == whole


def test_a_share_of_a_processor_counts_as_one() -> None:
    assert quantity("1500m", up=True) == 2
    assert quantity("2000m", up=True) == 2


@given(st.text(alphabet="0123456789.kKMGTPimeE+-", max_size=30))
def test_any_text_is_a_count_or_none(value: str) -> None:
    found = quantity(value)
    assert found is None or 0 <= found <= 2**53
