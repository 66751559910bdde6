"""The failures for measuring only: two halves without a common source, and no kind of them in the training data.

test_unseen_runs looks for their logs in the training data.
"""

import socket
from functools import cache
from pathlib import Path

import pytest

from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from tests.classifiers.data.overlap import texts
from tests.classifiers.data.test_no_real_hosts import PLACES
from tests.unseen_failures import declarations
from tests.unseen_failures.__main__ import DATA, HALVES

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

LEAST = 150
LEAST_SOURCES = 60


@cache
def half(name: str) -> tuple[LabelledCase, ...]:
    return tuple(labelled_cases.read_file(DATA / f"{name}.jsonl.zst"))


def every() -> list[LabelledCase]:
    return [case for name in HALVES for case in half(name)]


def log_of(case: LabelledCase) -> str:
    return "\n".join(texts(case))


def sources(name: str) -> set[str]:
    return {case.provenance["program"] for case in half(name)}


@pytest.mark.parametrize("name", HALVES)
def test_a_half_has_enough_failures_of_enough_sources(name: str) -> None:
    assert len(half(name)) >= LEAST
    assert len(sources(name)) >= LEAST_SOURCES


def test_no_source_is_in_both_halves() -> None:
    assert not sources("labels") & sources("tests")
    labelled_cases.check_ids(every())


def test_labels_are_those_of_the_induced_fault() -> None:
    plans = declarations.load()
    for case in every():
        assert {axis: case.labels.best[axis] for axis in ("side", "cause", "retry")} == {
            axis: plans[case.id.removeprefix("unseen-")][0].labels[axis] for axis in ("side", "cause", "retry")
        }, case.id


def test_logs_are_short_and_name_no_real_place() -> None:
    name = socket.gethostname()
    for case in every():
        log = log_of(case)
        assert log.strip(), case.id
        assert len(log.encode()) <= 64 * 1024, case.id
        assert not PLACES.search(log), case.id
        assert str(Path(__file__).parents[3]) + "/" not in log, case.id
        assert len(name) < 6 or name not in log, case.id


@pytest.mark.slow
def test_no_kind_of_a_failure_is_in_the_training_data(packaged_cases: list[LabelledCase]) -> None:
    kinds = {case.kind for case in packaged_cases}
    assert not kinds & {case.kind for case in every()}
