"""The policy reaches its targets in a small fleet, and intervals are correct."""

import pytest

from tests.simulations.policy import compare, parameters
from tests.simulations.policy.__main__ import main, table
from tests.simulations.policy.compare import BLIND, ORACLE, OURS, TRUE


@pytest.fixture(scope="module")
def seeds() -> compare.Seeds:
    names = ("none", BLIND, OURS, TRUE, ORACLE)
    return [compare.one_seed(parameters.default(), names, seed) for seed in range(2)]


def test_little_is_wasted_and_much_is_rescued(seeds: compare.Seeds) -> None:
    assert compare.less_wasted(seeds, OURS).mean >= compare.LEAST_RATIO
    assert compare.of_oracle(seeds, TRUE).mean >= 0.93
    assert compare.of_oracle(seeds, OURS).mean >= 0.70
    assert compare.of_oracle(seeds, OURS).mean <= 1.05


def test_jobs_held_for_a_repair_wait_for_an_operator(seeds: compare.Seeds) -> None:
    nobody_comes = parameters.default().with_one("person_hours", 10_000)
    assert compare.one_seed(nobody_comes, (OURS,), 0)[OURS].rescued < seeds[0][OURS].rescued


def test_the_table_has_a_row_for_each_policy(seeds: compare.Seeds) -> None:
    lines = table(seeds).splitlines()
    assert len(lines) == 2 + 5
    assert lines[3].startswith(f"| {BLIND} |")


def test_an_interval_contains_its_mean_and_is_narrow_for_equal_seeds() -> None:
    found = compare.interval([1.0, 2.0, 3.0, 4.0])
    assert found.low < found.mean == 2.5 < found.high
    assert compare.interval([7.0] * 5) == compare.Interval(7.0, 7.0, 7.0)
    assert compare.ratio([(1.0, 0.0)]).mean == float("inf")


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--workers", "1", "--base-only"]) == 0
    assert "| oracle |" in capsys.readouterr().out
