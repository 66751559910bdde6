"""The trained text classifier: one linear model an axis over the named features, and how sure it is.

Fitted with scikit-learn's multinomial logistic regression (`classifiers.training`); here are only its numbers, so that
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
            for name, value in row.items():
                column = columns.get(name)
                if column is not None:
                    indices.append(column)
                    data.append(value)
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

    def speaks_for(self, matrix: Any, row: int, axis: str, label: str, most: int = 6) -> list[tuple[str, float]]:
        """The features of a row that spoke most for a label against the mean of the others, strongest first."""
        head = self.head(axis)
        if label not in head.classes:
            return []
        begin, end = matrix.indptr[row], matrix.indptr[row + 1]
        columns, values = matrix.indices[begin:end], matrix.data[begin:end]
        mine = self.weights[columns, head.begin + head.classes.index(label)]
        told = values * (mine - self.means[axis][columns])
        order = np.argsort(-told)[: most + 1]
        found = [(self.names[columns[place]], float(told[place])) for place in order if told[place] > 0]
        return [one for one in found if one[0] != "bias"][:most]


def softmax(scores: Floats) -> Floats:
    """Row-wise softmax."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    out: Floats = (shifted / shifted.sum(axis=1, keepdims=True)).astype(np.float32)
    return out
