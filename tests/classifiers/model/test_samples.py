"""Training samples: the views of cases, their order and their weights."""

from collections import Counter
from dataclasses import replace

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.model import constants
from classifiers.model.line_weights import EQUAL
from classifiers.model.samples import samples
from classifiers.signatures import packaged


def test_of_many_runs_of_a_kind_the_first_two_give_all_views_and_the_others_one_each(
    cases: list[LabelledCase],
) -> None:
    first = cases[0]
    raw = replace(first.raw, job=replace(first.raw.job, message="the node went away"))
    runs = [replace(first, id=f"run-{number}", raw=raw) for number in range(5)]
    views = Counter(one.case.id for one in samples(runs, packaged(), EQUAL, 0))
    assert [views[one.id] for one in runs] == [2, 2, 1, 1, 1]


def test_several_processes_give_the_same_samples_as_one(
    cases: list[LabelledCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = cases[:6]
    alone = samples(few, packaged(), EQUAL, 0)
    monkeypatch.setattr(constants, "CASES_WORTH_PROCESSES", 2)
    together = samples(few, packaged(), EQUAL, 0)
    assert together == alone
    assert [list(one.features) for one in together] == [list(one.features) for one in alone]
