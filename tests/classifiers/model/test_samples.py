"""What a model is fitted on: the windows of cases, their order and their weights."""

from collections import Counter
from dataclasses import replace

from classifiers.data.labelled_cases import LabelledCase
from classifiers.model.samples import samples
from classifiers.signatures import packaged


def test_of_many_runs_of_a_kind_the_first_two_are_cut_and_the_others_give_one_window(
    cases: list[LabelledCase],
) -> None:
    first = cases[0]
    raw = replace(first.raw, job=replace(first.raw.job, message="the node went away"))
    runs = [replace(first, id=f"run-{number}", raw=raw) for number in range(5)]
    windows = Counter(one.case.id for one in samples(runs, packaged(), 0))
    assert [windows[one.id] for one in runs] == [2, 2, 1, 1, 1]
