"""Ranking nodes by suspicion finds known bad ones better than counting failures."""

from statistics import mean

import pytest

from tests.simulations.suspicion import RANKINGS, Fleet, auc, compare, precision

SEEDS = 6


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[float, float]]:
    found = compare(SEEDS)
    return {name: (mean(one.precision for one in runs), mean(one.auc for one in runs)) for name, runs in found.items()}


def test_suspicion_beats_counting(results: dict[str, tuple[float, float]]) -> None:
    assert set(results) == set(RANKINGS)
    precise, area = results["suspicion"]
    for counted in ("failed jobs", "hardware failures"):
        assert precise > results[counted][0] + 0.1
        assert area > results[counted][1] + 0.1
    assert precise > results["weighted failures per node-hour"][0]  # a node that ran for a minute is not the worst


def test_counting_failures_ranks_nodes_of_large_jobs_high() -> None:
    fleet = Fleet(1)
    fleet.run()
    big, small = fleet.nodes[: fleet.big], fleet.nodes[fleet.big :]
    counted = mean(node.failed for node in big) / mean(node.failed for node in small)
    weighted = sum(node.weighted_failures for node in big) / sum(node.exposure for node in big)
    others = sum(node.weighted_failures for node in small) / sum(node.exposure for node in small)
    assert counted > 1.5
    assert weighted / others < counted / 1.3


def test_the_same_seed_gives_the_same_fleet() -> None:
    assert Fleet(3).run() == Fleet(3).run()


def test_precision_and_auc_are_computed_correctly() -> None:
    bad = [True, True, False, False]
    assert precision([4, 3, 2, 1], bad) == 1
    assert auc([4, 3, 2, 1], bad) == 1
    assert precision([1, 2, 3, 4], bad) == 0
    assert auc([1, 2, 3, 4], bad) == 0
    assert precision([1, 1, 1, 1], bad) == 0.5
    assert auc([1, 1, 1, 1], bad) == 0.5
