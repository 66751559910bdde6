"""What is added to fitted heads: counts of features, and how often a class is met in life."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from classifiers import signatures
from classifiers.contracts import JobFacts, LogStream, RawCase
from classifiers.data.labelled_cases import LabelledCase, Labels
from classifiers.model import fitting
from classifiers.model.fitting import Table
from classifiers.model.samples import ASIDE, samples


def case(number: int, about: str) -> LabelledCase:
    best = {"side": "user", "cause": "USER.1", "category": "none", "symptom": "D.2.1", "retry": "futile"}
    return LabelledCase(
        id=f"{about}-{number}",
        group=f"{about}-{number}",
        kind=f"{about}-{number}",
        raw=RawCase(job=JobFacts(status="hung", gpus=4), streams=(LogStream(text="rank 2 waits in the barrier"),)),
        labels=Labels(best=best, allowed={axis: (label,) for axis, label in best.items()}),
        provenance={"origin": "composed", "about": about},
    )


def test_counting_adds_to_the_class_that_has_a_word_more_often_and_leaves_the_catalogue_s_features_alone() -> None:
    names = ["i:broadcast", "i:sampler", "s:an.entry", "i:never seen"]
    told = csr_matrix(np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0]], dtype=np.float32))
    nothing = np.zeros(len(names), dtype=np.bool_)
    table = Table([], {name: place for place, name in enumerate(names)}, told, nothing, nothing)
    masses = fitting._masses(np.array(["C.3", "C.3", "C.7"]), np.ones(3), ("C.3", "C.7"))
    broadcast, sampler, entry, unseen = fitting._counted(table, told, masses, 0.1)
    assert broadcast[0] > 0 > broadcast[1]
    assert sampler[1] > 0 > sampler[0]
    assert not entry.any()
    assert not unseen.any()


def test_a_class_that_the_corpus_shows_too_often_loses_by_it_and_one_without_a_share_stays() -> None:
    sides = ("hardware", "system", "unpublished", "user")
    labels = ["user"] * 8 + ["hardware", "system", "unpublished"]
    masses = fitting._masses(np.array(labels), np.ones(len(labels)), sides)
    hardware, system, unpublished, user = fitting._met("side", masses, sides)
    assert user < 0 < min(hardware, system)
    assert unpublished == 0


def test_equal_rows_of_a_label_become_one_that_weighs_as_much() -> None:
    rows = csr_matrix(np.array([[1, 0, 2], [0, 1, 0], [1, 0, 2], [1, 0, 2]], dtype=np.float32))
    merged, labels, weights = fitting._merged(rows, ["C.3", "C.3", "C.3", "C.7"], np.array([1.0, 2.0, 4.0, 8.0]))
    told = {(label, *row): weight for label, row, weight in zip(labels, merged.toarray(), weights, strict=True)}
    assert told == {("C.3", 1, 0, 2): 5.0, ("C.3", 0, 1, 0): 2.0, ("C.7", 1, 0, 2): 8.0}


def test_cases_composed_for_another_axis_are_few_there_and_weigh_together_what_they_should() -> None:
    entries = signatures.Catalogue((), {})
    taken = samples([case(number, "symptom") for number in range(10)], entries, 0)
    whole = [row for row, one in enumerate(taken) if one.window == "whole"]
    picked, _, weights = fitting.targets(taken, range(len(taken)), "side")
    own, _, owned = fitting.targets(taken, range(len(taken)), "symptom")
    assert len(whole) == 10
    assert own == list(range(len(taken)))
    assert 0 < len(picked) < len(own) / 2
    assert sum(weights) == pytest.approx(ASIDE * sum(owned), rel=0.1)
