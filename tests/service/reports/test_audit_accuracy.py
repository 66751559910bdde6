"""Accuracy from audits: weighted back to all failures, by stratum, with intervals that hold."""

import random

import pytest

from service.feedback.records import AuditResult
from service.reports import intervals
from service.reports.audit_accuracy import accuracy


def answers(stratum: str, population: int, right: int, wrong: int, week: str = "2026-W47") -> list[AuditResult]:
    return [
        AuditResult(week, stratum, population, True, False, number < right, number < right)
        for number in range(right + wrong)
    ]


def test_one_stratum_of_a_large_population_has_wilson_s_interval() -> None:
    found = accuracy(answers("user", 10**9, 36, 4)).side
    wilson = intervals.share(37, 42)
    assert found is not None
    assert wilson is not None
    assert found.value == 0.9
    assert found.low == pytest.approx(intervals.share_of(0.9, 40).low, abs=1e-6)


def test_strata_are_weighted_with_their_failures() -> None:
    found = accuracy([*answers("user", 950, 10, 0), *answers("hardware", 50, 5, 5)])
    assert found.side is not None
    assert found.side.value == pytest.approx(0.975)
    assert found.side.low < 0.95 < found.side.value < found.side.high
    assert [(one.name, one.side_right, one.answered) for one in found.strata] == [("hardware", 5, 10), ("user", 10, 10)]
    assert found.covered == 1.0


def test_open_strata_and_cannot_tell_are_counted_apart() -> None:
    unsure = AuditResult("2026-W47", "system", 100, True, True, None, None)
    waiting = AuditResult("2026-W47", "hardware", 300, False, False, None, None)
    found = accuracy([*answers("user", 600, 9, 1), unsure, waiting])
    assert (found.answered, found.unsure, found.covered) == (10, 1, 0.6)
    assert found.side is not None
    assert found.side.value == 0.9
    assert accuracy([unsure]).side is None
    assert accuracy([]).side is None


def test_an_audit_of_every_failure_has_no_uncertainty() -> None:
    found = accuracy(answers("user", 10, 9, 1)).side
    assert found is not None
    assert found.low == found.value == found.high == 0.9


def test_the_interval_holds_the_share_of_the_population() -> None:
    rng = random.Random(7)
    strata = {"user": (3_000, 0.97), "system": (600, 0.85), "hardware": (150, 0.75)}
    total = sum(size for size, _ in strata.values())
    truth = sum(size * share for size, share in strata.values()) / total
    held = 0
    for _ in range(400):
        sample = []
        for name, (size, share) in strata.items():
            right = sum(rng.random() < share for _ in range(14))
            sample += answers(name, size, right, 14 - right)
        found = accuracy(sample).side
        assert found is not None
        held += found.low <= truth <= found.high
    assert held / 400 >= 0.93
