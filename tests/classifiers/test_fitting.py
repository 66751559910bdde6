"""What is added to fitted heads: counts of features, and how often a class is met in life."""

import numpy as np
from scipy.sparse import csr_matrix

from classifiers import fitting
from classifiers.fitting import Table


def test_counting_adds_to_the_class_that_has_a_word_more_often_and_leaves_the_catalogue_s_features_alone() -> None:
    names = ["i:broadcast", "i:sampler", "s:an.entry", "i:never seen"]
    told = csr_matrix(np.array([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 0]], dtype=np.float32))
    nothing = np.zeros(len(names), dtype=np.bool_)
    table = Table([], {name: place for place, name in enumerate(names)}, told, nothing, nothing)
    masses = fitting._masses(["C.3", "C.3", "C.7"], np.ones(3, dtype=np.float32), ("C.3", "C.7"))
    broadcast, sampler, entry, unseen = fitting._counted(table, told, masses, 0.1)
    assert broadcast[0] > 0 > broadcast[1]
    assert sampler[1] > 0 > sampler[0]
    assert not entry.any()
    assert not unseen.any()


def test_a_class_that_the_corpus_shows_too_often_loses_by_it_and_one_without_a_share_stays() -> None:
    sides = ("hardware", "system", "unpublished", "user")
    labels = ["user"] * 8 + ["hardware", "system", "unpublished"]
    masses = fitting._masses(labels, np.ones(len(labels), dtype=np.float32), sides)
    hardware, system, unpublished, user = fitting._met("side", masses, sides)
    assert user < 0 < min(hardware, system)
    assert unpublished == 0
