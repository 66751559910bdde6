"""Rows, labels and weights that an axis is fitted on."""

from dataclasses import replace

import pytest

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.model import constants
from classifiers.model.artifact import Model
from classifiers.model.beginnings import one_of_each_kind
from classifiers.model.case_views import WHOLE
from classifiers.model.line_weights import EQUAL
from classifiers.model.packaged_scores import PackagedClassifier
from classifiers.model.samples import samples
from classifiers.model.training_table import SampledCases, TrainingTable, table_of

EMPTY = signatures.Catalogue((), {})
BEST = {"side": "user", "cause": "USER.1", "category": "none", "symptom": "D.2.1", "retry": "futile"}


def case(number: int, text: str = "rank 2 waits in the barrier", **allowed: tuple[str, ...]) -> LabelledCase:
    name = f"symptom-{number}"
    return LabelledCase(
        id=name,
        group=name,
        kind=name,
        raw=RawCase(job=JobFacts(status="hung", gpus=4), streams=(LogStream(text=text),)),
        labels=Labels(best=dict(BEST), allowed={**{axis: (label,) for axis, label in BEST.items()}, **allowed}),
        provenance={"origin": "composed", "labelled_for": "symptom"},
    )


def table(*cases: LabelledCase) -> TrainingTable:
    return table_of(samples(cases, EMPTY, EQUAL, 0))


def test_cases_composed_for_another_axis_are_all_used_there_with_little_weight() -> None:
    found = table(*(case(number) for number in range(10)))
    every = range(len(found.samples))
    secondary, own = found.targets(every, "side"), found.targets(every, "symptom")
    assert len(found.rows(lambda sample: sample.view == WHOLE)) == 10
    assert own.rows == secondary.rows == list(every)
    assert sum(secondary.weights) == pytest.approx(constants.SECONDARY_AXIS_WEIGHT * sum(own.weights))


def test_labels_that_experts_could_defend_share_the_rest_of_the_weight() -> None:
    found = table(case(0, symptom=("D.2.1", "D.2.2", "C.3")))
    targets = found.targets([0], "symptom")
    total = sum(targets.weights)
    shares = {label: weight / total for label, weight in zip(targets.labels, targets.weights, strict=True)}
    assert shares == pytest.approx({"D.2.1": 0.75, "D.2.2": 0.125, "C.3": 0.125})


def test_only_words_of_several_kinds_are_features() -> None:
    found = table(case(0, "shared line of alpha"), case(1, "shared line of beta"))
    assert "w:shared" in found.names
    assert "w:alpha" not in found.names
    assert found.sizes[0] > found.matrix[0].nnz


def test_features_stand_in_the_order_of_their_frequency_and_values_at_their_features() -> None:
    found = table(case(0, "shared often"), case(1, "shared often"), case(2, "shared seldom"), case(3, "gone seldom"))
    frequencies = found.matrix.getnnz(axis=0).tolist()
    assert frequencies == sorted(frequencies, reverse=True)
    for row, sample in enumerate(found.samples):
        known = dict(zip(found.names, found.matrix[row].toarray()[0].tolist(), strict=True))
        assert {name: value for name, value in known.items() if value} == pytest.approx(
            {name: value for name, value in sample.features.items() if name in known}
        )


def test_cases_that_are_samples_are_not_read_again_for_the_choice_of_beginnings(
    cases: list[LabelledCase], model: Model
) -> None:
    classifier = PackagedClassifier(model, signatures.packaged())
    read = SampledCases(classifier, table_of([])).candidates_and_labels(cases)
    known = table_of(samples(cases, signatures.packaged(), model.lines, 0), model.lines)
    sampled = SampledCases(classifier, known)
    # A text that is not the sample's shows that it is not read.
    begun = {case.id for case in one_of_each_kind(cases)}
    blank = [replace(one, raw=replace(one.raw, streams=())) if one.id in begun else one for one in cases]
    found = sampled.candidates_and_labels(blank)
    assert [labels for _, labels in found] == [labels for _, labels in read]
    assert [among.found for among, _ in found] == [among.found for among, _ in read]
