"""Training samples: the views of cases, their order and their weights."""

from collections import Counter
from dataclasses import replace

import pytest

from classifiers.data.labelled_cases import LabelledCase
from classifiers.model import constants
from classifiers.model.beginnings import one_of_each_kind
from classifiers.model.case_views import WHOLE
from classifiers.model.line_weights import EQUAL
from classifiers.model.samples import Sample, samples
from classifiers.signatures import packaged


def test_of_many_runs_of_a_kind_the_first_two_give_all_views_and_the_others_one_each(
    cases: list[LabelledCase],
) -> None:
    first = cases[0]
    raw = replace(first.raw, job=replace(first.raw.job, message="the node went away"))
    runs = [replace(first, id=f"run-{number}", raw=raw) for number in range(5)]
    views = Counter(one.case.id for one in samples(runs, packaged(), EQUAL, 0))
    assert [views[one.id] for one in runs] == [2, 2, 1, 1, 1]


@pytest.mark.slow
def test_several_processes_give_the_same_samples_as_one(
    cases: list[LabelledCase], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = cases[:6]
    alone = samples(few, packaged(), EQUAL, 0)
    monkeypatch.setattr(constants, "CASES_WORTH_PROCESSES", 2)
    together = samples(few, packaged(), EQUAL, 0)
    assert together == alone
    assert [list(one.features) for one in together] == [list(one.features) for one in alone]
    assert [_candidates(one) for one in together] == [_candidates(one) for one in alone]


def test_one_sample_of_a_case_that_the_choice_of_beginnings_is_fitted_on_has_the_whole_case(
    cases: list[LabelledCase],
) -> None:
    first = next(case for case in one_of_each_kind(cases) if len(case.raw.streams) == 1)
    labels = replace(first.labels, root_line=None)
    job = replace(first.raw.job, message="the node went away")
    run = replace(first, raw=replace(first.raw, job=job))
    # Of the third case of the kind, the first with a labelled first line, there is one view, and not of the whole case.
    runs = [replace(run, id="run-1", labels=labels), replace(run, id="run-2", labels=labels), replace(run, id="run-3")]
    found = samples(runs, packaged(), EQUAL, 0)
    [sample] = [one for one in found if one.whole is not None]
    assert sample.case.id == "run-3"
    assert sample.view != WHOLE
    [whole] = samples([runs[2]], packaged(), EQUAL, 0)[:1]
    assert whole.whole is not None
    assert sample.whole is not None
    assert sample.whole.features == whole.features == whole.whole.features
    assert sample.whole.fusion == whole.fusion == whole.whole.fusion
    assert sample.whole.candidates.found == whole.whole.candidates.found != []


def _candidates(sample: Sample) -> list[str] | None:
    return None if sample.whole is None else [item.text for item in sample.whole.candidates.found]
