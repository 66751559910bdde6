import numpy as np

from classifiers.model.linear_model import Head, TextModel


def test_weights_in_another_order_of_memory_say_the_same_and_are_not_copied_at_each_call() -> None:
    weights = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 0.25]], dtype=np.float32)
    heads = (Head("side", ("system", "user"), 0),)
    models = [
        TextModel(("i:a", "i:b", "bias"), heads, given, np.zeros(2, dtype=np.float32))
        for given in (weights, np.asfortranarray(weights))
    ]
    told = [model.probabilities(model.matrix([{"i:a": 1.0, "bias": 1.0}])[0])["side"] for model in models]
    assert np.array_equal(told[0], told[1])
    assert all(model.weights.flags.c_contiguous for model in models)
