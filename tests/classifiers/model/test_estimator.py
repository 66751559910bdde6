"""The first-stage estimator: scikit-learn's contract, convergence, and the additions to the fitted weights."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import parametrize_with_checks

from classifiers.model.estimator import TextClassifier, merge_equal_rows

# Checks that do not apply, with the reason.
EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": "the solver is stochastic and stops at a tolerance",
    "check_sample_weight_equivalence_on_sparse_data": "the solver is stochastic and stops at a tolerance",
}


@parametrize_with_checks(  # type: ignore[untyped-decorator] # scikit-learn has no types
    [TextClassifier(tolerance=1e-3, max_passes=2_000)], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_the_estimator_follows_the_contract_of_scikit_learn(estimator: TextClassifier, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def _counts() -> tuple[csr_matrix, np.ndarray]:
    """Three features: one of each class, one of both."""
    return csr_matrix(np.array([[1, 0, 1], [1, 0, 1], [0, 1, 1]], dtype=np.float32)), np.array(["C.3", "C.3", "C.7"])


def test_word_counts_raise_the_class_that_has_a_word_more_often_and_leave_other_features_alone() -> None:
    matrix, labels = _counts()
    mask = np.array([True, True, False])
    plain = TextClassifier().fit(matrix, labels).coef_
    counted = TextClassifier(word_count_share=0.1, counted_features=mask).fit(matrix, labels).coef_
    change = counted - plain
    assert change[0, 0] > 0 > change[0, 1]
    assert change[1, 1] > 0 > change[1, 0]
    assert not change[2].any()


def test_a_class_that_the_data_show_too_often_loses_and_one_without_a_published_share_stays() -> None:
    labels = np.array(["user"] * 8 + ["hardware", "system", "unpublished"])
    matrix = csr_matrix(np.eye(len(labels), dtype=np.float32))
    prior = {"hardware": 1.0, "system": 1.0, "user": 1.0}
    plain = TextClassifier().fit(matrix, labels).intercept_
    shifted = TextClassifier(class_prior=prior, prior_shift=0.5).fit(matrix, labels).intercept_
    hardware, system, unpublished, user = shifted - plain
    assert user < 0 < min(hardware, system)
    assert unpublished == 0


def test_equal_rows_of_a_class_become_one_with_the_sum_of_their_weights() -> None:
    rows = csr_matrix(np.array([[1, 0, 2], [0, 1, 0], [1, 0, 2], [1, 0, 2]], dtype=np.float32))
    merged, codes, weights = merge_equal_rows(rows, np.array([3, 3, 3, 7]), np.array([1.0, 2.0, 4.0, 8.0]))
    found = {(code, *row): weight for code, row, weight in zip(codes, merged.toarray(), weights, strict=True)}
    assert found == {(3, 1, 0, 2): 5.0, (3, 0, 1, 0): 2.0, (7, 1, 0, 2): 8.0}


def test_the_solver_says_so_where_it_does_not_converge() -> None:
    matrix, labels = _counts()
    with pytest.warns(UserWarning, match="max_iter was reached"):
        TextClassifier(max_passes=1, tolerance=1e-9).fit(matrix, labels)


def test_the_same_seed_gives_the_same_weights() -> None:
    matrix, labels = _counts()
    one, other = (TextClassifier(random_state=3).fit(matrix, labels) for _ in range(2))
    assert np.array_equal(one.coef_, other.coef_)
