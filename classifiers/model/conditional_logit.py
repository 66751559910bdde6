"""Conditional logit: classes share the coefficients of features that describe sample and class together."""

from dataclasses import dataclass

import numpy as np

from classifiers.model.linear_model import Doubles, Floats, softmax


class NotConvergedError(RuntimeError):
    """The solver stopped before it converged."""


@dataclass(frozen=True, slots=True)
class ConditionalLogit:
    """P(class k | sample) is proportional to exp(sum over f of `coefficients[f]` × feature f of sample and class k).

    McFadden's choice model. It has one coefficient a feature, whatever the number of classes, so that rare classes
    profit from what frequent ones teach. Coefficients are at least 0: no feature speaks against the class it supports.
    """

    coefficients: tuple[float, ...]

    def scores(self, features: Floats) -> Floats:
        """Scores (samples × classes) of `features` (samples × classes × features)."""
        out: Floats = features @ np.asarray(self.coefficients, dtype=np.float32)
        return out

    def predict_proba(self, features: Floats) -> Floats:
        """Class probabilities (samples × classes) of `features` (samples × classes × features)."""
        out: Floats = softmax(self.scores(features))
        return out


def fit(
    features: Floats, targets: Floats, weights: Doubles, penalty: float, *, max_iterations: int = 500
) -> ConditionalLogit:
    """Fit the coefficients by penalised maximum likelihood, with L-BFGS-B run to convergence.

    Args:
        features: samples × classes × features.
        targets: samples × classes, each row the shares of its labels, which sum to one.
        weights: shape (samples,). Only the ratios count.
        penalty: strength of the L2 penalty, relative to a sample of mean weight.
        max_iterations: iterations after which the solver gives up.

    Raises:
        NotConvergedError: the solver gave up.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - for training only; it would double the time of a start

    count = len(features)
    share = (np.asarray(weights) / np.sum(weights)).astype(np.float32)[:, np.newaxis]

    def objective(coefficients: Doubles) -> tuple[float, Doubles]:
        scores = features @ coefficients.astype(np.float32)
        scores -= scores.max(axis=1, keepdims=True)
        total = np.exp(scores).sum(axis=1, keepdims=True)
        log_probabilities = scores - np.log(total)
        residuals = share * (np.exp(log_probabilities) - targets)
        gradient = np.tensordot(residuals, features, axes=([0, 1], [0, 1])).astype(np.float64)
        loss = -float((share * targets * log_probabilities).sum(dtype=np.float64))
        regularised = penalty / count
        return loss + regularised / 2 * float(coefficients @ coefficients), gradient + regularised * coefficients

    start = np.zeros(features.shape[2])
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"maxiter": max_iterations, "ftol": 1e-7, "gtol": 1e-5},
    )
    if not found.success and found.status == 1:
        raise NotConvergedError(f"label fusion did not converge in {max_iterations} iterations")
    return ConditionalLogit(tuple(round(float(weight), 6) for weight in found.x))
