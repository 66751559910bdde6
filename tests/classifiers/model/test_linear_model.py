import numpy as np

from classifiers.model.linear_model import Head, TextModel


def test_weights_in_another_memory_order_give_the_same_probabilities_without_copies() -> None:
    weights = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 0.25]], dtype=np.float32)
    heads = (Head("side", ("system", "user"), 0),)
    models = [
        TextModel(("i:a", "i:b", "bias"), heads, given, np.zeros(2, dtype=np.float32))
        for given in (weights, np.asfortranarray(weights))
    ]
    found = [model.probabilities(model.matrix([{"i:a": 1.0, "bias": 1.0}])[0])["side"] for model in models]
    assert np.array_equal(found[0], found[1])
    assert all(model.weights.flags.c_contiguous for model in models)


def test_the_features_that_support_a_label_most_come_first() -> None:
    weights = np.array([[1.0, -1.0], [0.5, -2.0], [9.0, -9.0]], dtype=np.float32)
    model = TextModel(("i:a", "i:b", "bias"), (Head("side", ("system", "user"), 0),), weights, np.zeros(2, np.float32))
    matrix, known = model.matrix([{"i:a": 1.0, "i:b": 1.0, "bias": 1.0, "i:unknown": 1.0}])
    assert known.tolist() == [0.75]
    assert model.top_contributions(matrix, "side", ["system"]) == [(("i:b", 1.25), ("i:a", 1.0))]
    assert model.top_contributions(matrix, "side", ["user"]) == [()]
