"""Nothing of a set used for measuring is in the training data: measuring on what one trains on proves nothing."""

import json
import os
from pathlib import Path

import pytest

from classifiers.composition import training_cases
from classifiers.data.labelled_cases import LabelledCase
from tests.classifiers.data.overlap import close_pairs, normal, texts

LONG = 60
CASES = os.environ.get("TEST_CASES")

pytestmark = pytest.mark.skipif(CASES is None, reason="TEST_CASES names no measured set to compare with")


def _measured() -> list[str]:
    return [json.loads(line)["log"] for line in Path(CASES or "").read_text(encoding="utf-8").splitlines() if line]


def _composed() -> list[LabelledCase]:
    return [*training_cases.composed(), *training_cases.long_runs()]


def test_no_long_line_of_a_composed_case_stands_in_the_measured_set() -> None:
    known = {found for log in _measured() for line in log.splitlines() if len(found := normal(line)) >= LONG}
    shared = {
        (case.id, line)
        for case in _composed()
        for text in texts(case)
        for line in text.splitlines()
        if normal(line) in known
    }
    assert not shared


def test_no_composed_log_is_mostly_one_of_the_measured_set() -> None:
    assert not close_pairs(_composed(), _measured())
