from dataclasses import replace

import numpy as np
import pytest

from classifiers.model.site import platt_scaling
from classifiers.model.site.layer import sigmoid
from classifiers.model.site.platt_scaling import Point


def points(confidence: float, right: int, wrong: int) -> list[Point]:
    return [Point(confidence, number < right) for number in range(right + wrong)]


def test_a_confidence_is_recalibrated_only_where_that_clearly_helps() -> None:
    by_chance = platt_scaling.fit(points(0.9, 55, 5))
    assert by_chance.confidence(0.9) == 0.9
    too_sure = platt_scaling.fit(points(0.95, 70, 50) + points(0.6, 10, 20))
    assert too_sure.cases == 150
    assert 0.5 < too_sure.confidence(0.95) < 0.75


def test_many_failures_of_one_fault_are_no_evidence() -> None:
    one_fault = [replace(one, group="licence") for one in points(0.95, 0, 50)]
    assert platt_scaling.fit(points(0.95, 95, 5) + one_fault).cases == 0
    assert platt_scaling.fit(points(0.95, 95, 55)).cases == 150


def test_an_audited_failure_counts_as_the_failures_that_it_stands_for() -> None:
    right, wrong = points(0.6, 0, 100), points(0.6, 0, 0)
    ordinary = [Point(0.6, number % 20 != 0, weight=9.0) for number in range(200)]
    corrected_before = [Point(0.6, right=False, weight=0.1) for _ in range(100)]
    found = platt_scaling.fit(ordinary + corrected_before)
    assert right
    assert not wrong
    assert found.confidence(0.6) == pytest.approx(0.95, abs=0.03)


def test_chance_recalibrates_in_few_of_many_sites() -> None:
    """A one-sided test at 2.5 %: confidences that are right stay, whatever 100 audits say."""
    rng, changed, sites = np.random.default_rng(7), 0, 300
    for _ in range(sites):
        confidences = [sigmoid(odds) for odds in rng.normal(2.5, 1.0, 100)]
        changed += platt_scaling.fit([Point(one, bool(rng.random() < one)) for one in confidences]).cases > 0
    assert changed / sites <= 0.05
