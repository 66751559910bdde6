"""The whole runs for measuring only: labelled, without real places, in no two files, and none in training data."""

from functools import cache
from pathlib import Path

import pytest

from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from tests.classifiers.data import test_unseen_failures as failures
from tests.classifiers.data.overlap import LEAST_SHINGLES as LEAST_OF_A_FAILURE
from tests.classifiers.data.overlap import close_pairs, texts
from tests.classifiers.data.test_no_real_hosts import PLACES

pytestmark = pytest.mark.xdist_group("training cases")  # composed once for all files of the group

DATA = Path(__file__).parents[2] / "data" / "unseen_runs"
LEAST_SHINGLES = 60  # shorter training cases are standard messages, which long logs contain as well
LEAST = {
    "unread": 50,
    "industry_and_institutes_unread": 120,
    "startups_and_hospitals_unread": 120,
    "satellites_and_media_unread": 120,
    "telecom_weather_robotics_unread": 180,
}


@cache
def runs(name: str) -> tuple[LabelledCase, ...]:
    return tuple(labelled_cases.read_file(DATA / f"{name}.jsonl.zst"))


def every() -> list[LabelledCase]:
    return [run for name in LEAST for run in runs(name)]


def log_of(run: LabelledCase) -> str:
    return "\n".join(texts(run))


@pytest.mark.parametrize("name", LEAST)
def test_a_file_has_enough_runs_of_each_side(name: str) -> None:
    sides = [run.labels.best["side"] for run in runs(name)]
    assert len(sides) >= LEAST[name]
    assert all(sides.count(side) >= LEAST[name] // 6 for side in ("hardware", "system", "user"))


def test_no_run_is_in_two_files() -> None:
    labelled_cases.check_ids(every())


def test_the_root_line_of_a_run_is_in_it() -> None:
    for run in every():
        line = run.labels.root_line
        assert line is None or line.split("\n")[0].strip() in log_of(run), run.id


def test_runs_name_no_real_place() -> None:
    for run in every():
        assert log_of(run).strip(), run.id
        assert not PLACES.search(log_of(run)), run.id


def test_a_copy_or_a_part_of_a_run_is_found_and_another_run_is_not() -> None:
    run, other = runs("unread")[:2]
    log = log_of(run)
    found = close_pairs([other, run], [log[: len(log) // 2], f"{log}\nand a line"], least=10)
    assert [(name, number) for name, number, _ in sorted(found)] == [(run.id, 0), (run.id, 1)]
    assert all(shared >= 10 for _, _, shared in found)


@pytest.mark.slow
def test_no_run_and_no_failure_for_measuring_is_in_the_training_data(packaged_cases: list[LabelledCase]) -> None:
    """All files at once: most of the time is that of reading the training data."""
    unseen = [*every(), *failures.every()]
    least = [LEAST_SHINGLES] * len(every()) + [LEAST_OF_A_FAILURE] * len(failures.every())
    found = close_pairs(packaged_cases, [log_of(one) for one in unseen], least=least)
    assert not [(case, unseen[number].id, shared) for case, number, shared in found]  # and nothing of the logs' text
