"""The trained text classifier: one linear model an axis over the named features, and how sure it is.

Fitted with scikit-learn's multinomial logistic regression (`training`); here are only its numbers, so that
serving is one sparse product for a whole batch and a model is arrays and names, never pickled code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Floats = NDArray[np.float32]
AXES: Final = ("side", "cause", "category", "symptom", "retry")


@dataclass(frozen=True, slots=True)
class Head:
    """The classes of one axis and the columns of the weights that are theirs."""

    axis: str
    classes: tuple[str, ...]
    begin: int

    @property
    def end(self) -> int:
        """One past the last column."""
        return self.begin + len(self.classes)


@dataclass(frozen=True)
class TextModel:
    """`weights` is features × classes of all heads side by side, `intercept` one number a class."""

    names: tuple[str, ...]
    heads: tuple[Head, ...]
    weights: Floats
    intercept: Floats
    columns: Mapping[str, int] = field(default_factory=dict, repr=False)
    means: Mapping[str, Floats] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Row by row in memory: a sparse product would copy anything else whole, at each call.
        object.__setattr__(self, "weights", np.ascontiguousarray(self.weights))
        object.__setattr__(self, "columns", {name: column for column, name in enumerate(self.names)})
        means = {head.axis: self.weights[:, head.begin : head.end].mean(axis=1) for head in self.heads}
        object.__setattr__(self, "means", means)

    def matrix(self, rows: Sequence[Mapping[str, float]]) -> tuple[Any, Floats]:
        """The rows as a sparse matrix, and of each row the share of its words that the model knows."""
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
        shape = (len(rows), len(self.names))
        made = csr_matrix(
            (np.asarray(data, dtype=np.float32), np.asarray(indices, dtype=np.int32), np.asarray(pointers)), shape=shape
        )
        return made, known

    def probabilities(self, matrix: Any) -> dict[str, Floats]:
        """By axis one row of class probabilities a case."""
        scores = np.asarray(matrix @ self.weights) + self.intercept
        return {head.axis: softmax(scores[:, head.begin : head.end]) for head in self.heads}

    def head(self, axis: str) -> Head:
        """The head of an axis.

        Raises:
            KeyError: the model has none.
        """
        for head in self.heads:
            if head.axis == axis:
                return head
        raise KeyError(axis)

    def speak_for(
        self, matrix: Any, axis: str, labels: Sequence[str], most: int = 6
    ) -> list[tuple[tuple[str, float], ...]]:
        """Of each row the features that spoke most for its label against the mean of the others, strongest first."""
        head, means, weights, names = self.head(axis), self.means[axis], self.weights, self.names
        places = {label: head.begin + place for place, label in enumerate(head.classes)}
        pointers, indices, data = matrix.indptr.tolist(), matrix.indices, matrix.data
        out: list[tuple[tuple[str, float], ...]] = []
        for label, begin, end in zip(labels, pointers[:-1], pointers[1:], strict=True):
            place = places.get(label)
            if place is None:
                out.append(())
                continue
            columns = indices[begin:end]
            told = data[begin:end] * (weights[columns, place] - means[columns])
            order = np.argsort(-told)[: most + 1]
            found = zip(columns[order].tolist(), told[order].tolist(), strict=True)
            shown = [(names[column], share) for column, share in found if share > 0]
            out.append(tuple([one for one in shown if one[0] != "bias"][:most]))
        return out


def softmax(scores: Floats) -> Floats:
    """Row-wise softmax."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: Floats = (shifted / shifted.sum(axis=1, keepdims=True)).astype(np.float32)
    return out
