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


def test_weeks_count_by_their_failures_not_by_their_audits() -> None:
    quiet = answers("user", 100, 10, 10, week="2026-W46")
    busy = answers("user", 9_900, 20, 0, week="2026-W47")
    found = accuracy([*quiet, *busy])
    assert found.side is not None
    assert found.side.value == pytest.approx(0.995)
    assert (found.answered, found.side_right, found.covered) == (40, 30, 1.0)
    left_out = accuracy([*quiet, AuditResult("2026-W47", "user", 9_900, False, False, None, None)])
    assert left_out.covered == 0.01, "a week without an answer is not spoken for"


def test_the_interval_of_several_weeks_holds_the_share_of_the_population() -> None:
    rng = random.Random(11)
    held, widths = 0, []
    for _ in range(300):
        sample, right_of_all, total = [], 0.0, 0
        for week in range(8):
            for name, share in (("user", 0.97), ("system", 0.85), ("hardware", 0.75), ("judged", 0.3)):
                size = rng.choice((20, 200, 2_000)) if name == "user" else rng.choice((5, 60, 300))
                drawn = min(size, 20 if name == "user" else 5)
                truth = sum(rng.random() < share for _ in range(size))
                right = sum(rng.sample([True] * truth + [False] * (size - truth), drawn))
                sample += answers(name, size, right, drawn - right, week=f"2026-W{week + 10}")
                right_of_all, total = right_of_all + truth, total + size
        found = accuracy(sample).side
        assert found is not None
        held += found.low <= right_of_all / total <= found.high
        widths.append(found.high - found.low)
    assert held / 300 >= 0.93
    assert sum(widths) / 300 < 0.1, "not by being wide"


def test_the_interval_holds_where_nearly_all_failures_were_audited() -> None:
    rng = random.Random(5)
    held = 0
    for _ in range(400):
        sample, right_of_all = [], 0
        for name, size, drawn, share in (("user", 28, 27, 0.9), ("system", 9, 9, 0.8), ("hardware", 4, 4, 0.7)):
            truth = sum(rng.random() < share for _ in range(size))
            right = sum(rng.sample([True] * truth + [False] * (size - truth), drawn))
            sample += answers(name, size, right, drawn - right)
            right_of_all += truth
        found = accuracy(sample).side
        assert found is not None
        held += found.low <= right_of_all / 41 <= found.high
    assert held / 400 >= 0.93
