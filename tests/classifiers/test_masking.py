import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.masking import mask


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("File /data/a/b.idx not found", "File /mnt/user7/c.idx not found"),
        ("peer 10.0.0.1:4711 closed", "peer 172.16.3.9:80 closed"),
        ("step 10 loss 2.5e-3", "step 99999 loss 0.1"),
        ("2026-11-20 03:41:57,100 x", "2025-01-02T00:00:00Z x"),
        ("pod 3f2b8c1e-1111-4222-8333-123456789abc gone", "pod 00000000-aaaa-4bbb-8ccc-ffffffffffff gone"),
        ("at 0x7f00deadbeef", "at 0x1"),
        ("GET https://a.example/x?y=1 failed", "GET http://b.example failed"),
    ],
)
def test_parts_that_differ_between_runs_are_masked(one: str, other: str) -> None:
    assert mask(one) == mask(other)


def test_parts_that_distinguish_failures_are_kept() -> None:
    assert mask("KeyError: 'x'") != mask("ValueError: 'x'")


@given(st.text())
def test_any_line_can_be_masked(line: str) -> None:
    assert "\n" not in mask(line)
