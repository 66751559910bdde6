"""Verdicts drawn with the measured frequencies."""

from collections import Counter
from random import Random

import pytest

from tests.simulations.policy.verdicts import Measured, Truth, packaged

TABLE = {
    "schema": "faultline-measured/1",
    "model": "m",
    "cases": 3,
    "kinds": 2,
    "splits": "by kind",
    "causes": {
        "SYS.5": {
            "truth": {"helps": 1.0},
            "outcomes": [
                {
                    "truth": "helps",
                    "cause": "SYS.5",
                    "retry": "helps",
                    "abstained": False,
                    "confidence": 0.9,
                    "share": 0.75,
                },
                {
                    "truth": "helps",
                    "cause": "USER.1",
                    "retry": "futile",
                    "abstained": True,
                    "confidence": 0.4,
                    "share": 0.25,
                },
            ],
        }
    },
}


def test_verdicts_are_drawn_with_the_measured_frequencies() -> None:
    random = Random(1)
    measured = Measured(TABLE)
    output = Counter(measured.draw(random, Truth("SYS.5", "helps")).cause for _ in range(4000))
    assert output["SYS.5"] / 4000 == pytest.approx(0.75, abs=0.03)


def test_a_table_with_another_schema_is_rejected() -> None:
    with pytest.raises(ValueError, match="faultline-measured/1"):
        Measured({**TABLE, "schema": "other/2"})


def test_the_packaged_table_contains_the_causes_of_the_fleet() -> None:
    random = Random(1)
    for codes, outlook in ((("USER.",), "futile"), (("HW.",), "helps_elsewhere"), (("SYS.1", "SYS.6"), "after_repair")):
        truth = packaged().truth(random, codes, outlook)  # type: ignore[arg-type] # one of the four
        assert truth.cause.startswith(codes)
        assert packaged().draw(random, truth).confidence <= 1
