"""When a new verdict says something else than the stored one."""

from dataclasses import replace
from typing import Any

import pytest

from service.failures.revised_verdict import differs
from tests.service.web.world import HARDWARE


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, False),
        ({"side": "system"}, True),
        ({"cause": "HW.NODE.3"}, True),
        ({"category": "other"}, True),
        ({"symptom": "other"}, True),
        ({"retry_outlook": "will_fail"}, True),
        ({"abstained": not HARDWARE.abstained}, True),
        ({"confidence": HARDWARE.confidence - 0.06}, True),
        ({"confidence": HARDWARE.confidence - 0.04}, False),
        ({"explanation": "other words"}, False),
    ],
)
def test_a_verdict_differs_by_what_it_says(changes: dict[str, Any], expected: bool) -> None:
    assert differs(HARDWARE, replace(HARDWARE, **changes)) is expected
