import numpy as np
import pytest

from classifiers.model import conditional_logit
from classifiers.model.conditional_logit import ConditionalLogit, NotConvergedError


def _choices(count: int = 4_000) -> tuple[np.ndarray, np.ndarray]:
    """Samples of three classes drawn with coefficients 1.5 and 0.5; the third feature is noise."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(count, 3, 3)).astype(np.float32)
    probabilities = ConditionalLogit((1.5, 0.5, 0.0)).predict_proba(features)
    drawn = [rng.choice(3, p=row / row.sum()) for row in probabilities.astype(float)]
    return features, np.eye(3, dtype=np.float32)[drawn]


def test_the_coefficients_that_samples_were_drawn_with_are_found() -> None:
    features, targets = _choices()
    fitted = conditional_logit.fit(features, targets, np.ones(len(features)), penalty=1.0)
    assert fitted.coefficients == pytest.approx((1.5, 0.5, 0.0), abs=0.1)


def test_no_feature_counts_against_the_class_it_supports() -> None:
    features, targets = _choices()
    features[:, :, 2] = -features[:, :, 0]
    fitted = conditional_logit.fit(features, targets, np.ones(len(features)), penalty=1.0)
    assert fitted.coefficients[2] == 0


def test_probabilities_sum_to_one() -> None:
    features, _ = _choices(5)
    assert ConditionalLogit((1.0, 2.0, 3.0)).predict_proba(features).sum(axis=1) == pytest.approx(1)


def test_a_solver_that_gives_up_says_so() -> None:
    features, targets = _choices()
    with pytest.raises(NotConvergedError):
        conditional_logit.fit(features, targets, np.ones(len(features)), penalty=1.0, max_iterations=1)
