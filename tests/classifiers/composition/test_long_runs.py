"""Composed long runs keep to their labels, and the same seed gives the same runs."""

import pytest

from classifiers import taxonomy
from classifiers.composition import training_cases
from classifiers.composition.long_runs import failure_kinds
from classifiers.composition.long_runs.run import compose
from classifiers.data.labelled_cases import LabelledCase


@pytest.fixture(scope="module")
def runs() -> list[LabelledCase]:
    return training_cases.long_runs()


def test_every_kind_gives_several_runs(runs: list[LabelledCase]) -> None:
    names = {f"long-{kind.name}" for kind in failure_kinds.read()}
    assert {one.kind for one in runs} == names
    assert len(runs) == len(names) * training_cases.LONG_RUNS_PER_KIND


def test_a_run_holds_its_first_line_and_its_rank_takes_part(runs: list[LabelledCase]) -> None:
    for one in runs:
        rank, line = one.labels.root_rank, one.labels.root_line
        assert rank is not None
        assert 0 <= rank < one.provenance["ranks"], one.id
        assert line is None or any(line in stream.text for stream in one.raw.streams), one.id
        assert one.provenance["origin"] == "composed"


def test_many_launchers_and_ways_to_end_are_there(runs: list[LabelledCase]) -> None:
    assert len({one.provenance["launcher"] for one in runs}) >= 15
    assert {one.provenance["program"] for one in runs} == {f"long/{how}" for how in failure_kinds.WAYS}


def test_every_kind_is_of_the_taxonomy_and_the_seed_decides() -> None:
    axes = taxonomy.load()
    for kind in failure_kinds.read():
        assert kind.axes["cause"] in axes.causes, kind.name
    kind = failure_kinds.read()[0]
    assert compose(kind, "a", 20) == compose(kind, "a", 20) != compose(kind, "b", 20)


def test_no_place_is_left_unfilled(runs: list[LabelledCase]) -> None:
    for one in runs:
        for stream in one.raw.streams:
            assert not any(mark in stream.text for mark in ("{r}", "{host}", "$(", "$rank", "~trace", ">>[")), one.id
