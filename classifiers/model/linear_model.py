"""The trained text model: one linear classifier an axis over named features.

Fitted by `estimator.TextClassifier`; here are only its numbers, so that serving is one sparse product for a whole batch
and a model is arrays and names, never pickled code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from classifiers.model import constants
from classifiers.model.sparse_rows import SparseRows

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
_Float = TypeVar("_Float", bound=np.floating[Any])


def softmax(scores: NDArray[_Float]) -> NDArray[_Float]:
    """Row-wise softmax in the precision of the scores."""
    shifted: NDArray[_Float] = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[_Float] = shifted / shifted.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True, slots=True)
class Head:
    """The classes of one axis and the columns of the weights that are theirs, from `begin`."""

    axis: str
    classes: tuple[str, ...]
    begin: int

    @property
    def end(self) -> int:
        """One past the last column."""
        return self.begin + len(self.classes)


@dataclass(frozen=True)
class TextModel:
    """`weights` is features × classes, the heads next to each other; `intercept` has one number for each class."""

    names: tuple[str, ...]
    heads: tuple[Head, ...]
    weights: Floats
    intercept: Floats
    columns: Mapping[str, int] = field(default_factory=dict, repr=False)
    means: dict[str, Floats] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Row by row in memory: a sparse product would copy anything else at each call.
        object.__setattr__(self, "weights", np.ascontiguousarray(self.weights))
        object.__setattr__(self, "columns", dict(zip(self.names, range(len(self.names)), strict=True)))

    @property
    def classes(self) -> dict[str, tuple[str, ...]]:
        """The classes of each axis."""
        return {head.axis: head.classes for head in self.heads}

    def matrix(self, rows: Sequence[Mapping[str, float]]) -> tuple[SparseRows, Floats]:
        """The samples as a sparse matrix (samples × features), and of each the share of its features that are known."""
        columns = self.columns
        pointers = [0]
        indices: list[int] = []
        data: list[float] = []
        known = np.zeros(len(rows), dtype=np.float32)
        for number, row in enumerate(rows):
            begin = len(indices)
            places = list(map(columns.get, row))
            indices += [column for column in places if column is not None]
            data += [value for column, value in zip(places, row.values(), strict=True) if column is not None]
            pointers.append(len(indices))
            known[number] = (len(indices) - begin) / max(1, len(row))
        arrays = (np.asarray(data, np.float32), np.asarray(indices, np.int32), np.asarray(pointers, np.int64))
        return SparseRows(*arrays, shape=(len(rows), len(self.names))), known

    def probabilities(self, matrix: Any) -> dict[str, Floats]:
        """By axis the class probabilities, samples × classes."""
        scores = np.asarray(matrix @ self.weights) + self.intercept
        return {head.axis: softmax(scores[:, head.begin : head.end]) for head in self.heads}

    def _mean_of(self, axis: str) -> Floats:
        """Of each feature the mean weight over the classes of an axis; computed once."""
        if axis not in self.means:
            head = self.head(axis)
            self.means[axis] = self.weights[:, head.begin : head.end].mean(axis=1)
        return self.means[axis]

    def head(self, axis: str) -> Head:
        """The head of an axis.

        Raises:
            KeyError: the model has none.
        """
        for head in self.heads:
            if head.axis == axis:
                return head
        raise KeyError(axis)

    def top_contributions(self, matrix: Any, axis: str, labels: Sequence[str]) -> list[tuple[tuple[str, float], ...]]:
        """Of each sample the features that support its label most against the mean of all classes, strongest first."""
        head, means, weights, names = self.head(axis), self._mean_of(axis), self.weights, self.names
        places = {label: head.begin + place for place, label in enumerate(head.classes)}
        pointers, indices, data = matrix.indptr.tolist(), matrix.indices, matrix.data
        found: list[tuple[tuple[str, float], ...]] = []
        for label, begin, end in zip(labels, pointers[:-1], pointers[1:], strict=True):
            place = places.get(label)
            if place is None:
                found.append(())
                continue
            columns = indices[begin:end]
            shares = data[begin:end] * (weights[columns, place] - means[columns])
            order = np.argsort(-shares)[: constants.SHOWN_FEATURES + 1]
            ranked = zip(columns[order].tolist(), shares[order].tolist(), strict=True)
            shown = [(names[column], share) for column, share in ranked if share > 0 and names[column] != "bias"]
            found.append(tuple(shown[: constants.SHOWN_FEATURES]))
        return found
