"""The estimator of one axis: multinomial logistic regression with word counts and a class prior."""

from collections.abc import Mapping
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from classifiers.model import constants
from classifiers.model.linear_model import softmax

_TWO_CLASSES: Final = 2


class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Multinomial logistic regression over sparse features, in two steps that are folded into one set of weights.

    1. L2-penalised logistic regression. Equal rows of one class enter once, with the sum of their weights.
    2. To the fitted weights of some features a share of their naive Bayes log ratio is added: how much more often a
       class has the feature than all classes have. Rare words keep some weight by it. Likewise intercepts move part
       of the way from the class shares of the training data to a given class prior.

    Args:
        inverse_penalty: inverse strength of the L2 penalty.
        word_count_share: share of the naive Bayes log ratio that is added; 0 leaves it out.
        counted_features: mask of the features that step 2 applies to, shape (features,); None is all.
        class_prior: probability of each class in operation, in any unit; classes that it leaves out keep their share.
        prior_shift: how far the intercepts move to it, 0 (not) to 1.
        tolerance: the solver stops if no weight changes by more than this share of the largest one in one pass.
        max_passes: passes over the data; a `ConvergenceWarning` is raised if they are not enough.
        random_state: seed of the order in which the solver reads samples.

    Attributes:
        classes_: the class labels, shape (classes,).
        coef_: weights, shape (features, classes).
        intercept_: shape (classes,).
        n_iter_: passes that the solver needed.
        n_features_in_: number of features seen in `fit`.
    """

    def __init__(
        self,
        *,
        inverse_penalty: float = 0.3,
        word_count_share: float = 0.0,
        counted_features: NDArray[np.bool_] | None = None,
        class_prior: Mapping[str, float] | None = None,
        prior_shift: float = 0.0,
        tolerance: float = constants.SOLVER_TOLERANCE,
        max_passes: int = constants.SOLVER_PASSES,
        random_state: int = 0,
    ) -> None:
        self.inverse_penalty = inverse_penalty
        self.word_count_share = word_count_share
        self.counted_features = counted_features
        self.class_prior = class_prior
        self.prior_shift = prior_shift
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803 - scikit-learn's name
        """Fit the classifier.

        Args:
            X: samples × features, sparse or dense.
            y: class labels, shape (samples,).
            sample_weight: shape (samples,); None is one each. Only the ratios count.

        Raises:
            ValueError: the data do not fit each other, or hold fewer than two classes.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float32, np.float64])  # noqa: N806
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < _TWO_CLASSES:
            raise ValueError(f"TextClassifier needs samples of at least two classes, got {len(self.classes_)} class")
        matrix, codes, weights = merge_equal_rows(csr_matrix(X), codes, weights)
        weights *= len(y) / weights.sum()
        coefficients, intercept = self._solve(matrix, codes, weights)
        mass = csr_matrix((weights, (np.arange(len(codes)), codes)), shape=(len(codes), len(self.classes_)))
        if self.word_count_share:
            coefficients = coefficients + self.word_count_share * self._log_ratios(matrix, mass)
        self.coef_ = coefficients
        self.intercept_ = intercept + self.prior_shift * self._prior_ratios(np.asarray(mass.sum(axis=0)).ravel())
        return self

    def decision_function(self, X: Any) -> NDArray[np.floating[Any]]:  # noqa: N803
        """Scores of each class, shape (samples, classes); of two classes the second one's lead, shape (samples,)."""
        check_is_fitted(self)
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == _TWO_CLASSES else scores

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:  # noqa: N803
        """Class probabilities, shape (samples, classes)."""
        check_is_fitted(self)
        probabilities: NDArray[np.floating[Any]] = softmax(self._scores(X))
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The likeliest class of each sample, shape (samples,)."""
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[self._scores(X).argmax(axis=1)]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: Any) -> NDArray[np.floating[Any]]:  # noqa: N803
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float32, np.float64], reset=False)  # noqa: N806
        scores: NDArray[np.floating[Any]] = np.asarray(X @ self.coef_) + self.intercept_
        return scores

    def _solve(self, matrix: Any, codes: Any, weights: Any) -> tuple[Any, Any]:
        """Weights (features × classes) and intercepts of the penalised logistic regression."""
        copies = np.maximum(1, np.ceil(weights / constants.SAMPLE_WEIGHT_LIMIT)).astype(np.int64)
        rows = np.repeat(np.arange(len(copies)), copies)
        solver = LogisticRegression(
            C=self.inverse_penalty,
            solver="saga",
            max_iter=self.max_passes,
            tol=self.tolerance,
            random_state=self.random_state,
        )
        solver.fit(matrix[rows], codes[rows], sample_weight=(weights / copies)[rows])
        self.n_iter_ = int(np.max(solver.n_iter_))
        coefficients, intercept = solver.coef_, solver.intercept_
        if len(self.classes_) == _TWO_CLASSES:  # one row: the second class against the first
            coefficients = np.vstack([-coefficients, coefficients]) / 2
            intercept = np.concatenate([-intercept, intercept]) / 2
        return np.ascontiguousarray(coefficients.T), intercept

    def _log_ratios(self, matrix: Any, mass: Any) -> NDArray[np.floating[Any]]:
        """Naive Bayes log ratios (features × classes), 0 for features that are not counted."""
        counts = np.asarray((matrix.T @ mass).todense())
        if self.counted_features is not None:
            counts[~np.asarray(self.counted_features)] = 0
        seen = (counts > 0).any(axis=1) & (counts >= 0).all(axis=1)
        ratios = np.zeros_like(counts)
        if seen.any():
            everywhere = (counts.sum(axis=1) / counts[seen].sum())[seen, np.newaxis]
            shares = counts[seen] / np.maximum(counts[seen].sum(axis=0), 1e-9)
            smoothing = constants.WORD_COUNT_SMOOTHING
            ratios[seen] = np.log((shares + smoothing * everywhere) / (1 + smoothing) / everywhere)
        return ratios

    def _prior_ratios(self, mass: Any) -> NDArray[np.floating[Any]]:
        """Logarithm of each class' prior over its share in the training data, 0 where the prior leaves it out."""
        ratios = np.zeros(len(self.classes_))
        prior = self.class_prior or {}
        known = [column for column, name in enumerate(self.classes_) if name in prior]
        if known:
            expected = np.array([prior[self.classes_[column]] for column in known])
            ratios[known] = np.log(expected / expected.sum() / (mass[known] / mass[known].sum()))
        return ratios


def merge_equal_rows(matrix: Any, codes: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Equal rows of one class as one row with the sum of their weights, a quarter of the work less.

    Rows count as equal if two random sums of their features are.
    """
    sums = matrix @ np.random.default_rng(0).random((matrix.shape[1], 2))
    keys = np.column_stack([np.asarray(sums), codes])
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(group.ravel(), weights=weights).astype(np.float64)
    return matrix[first], codes[first], merged
