"""Fits the linear heads over samples. Words are learned with the catalogue's features and, again, without them."""

import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from classifiers import taxonomy
from classifiers.dataset import NONE
from classifiers.samples import Sample
from classifiers.text import Head, TextModel

ITERATIONS: Final = 25
_LEAST_SEEN: Final = 2
_SHRINK: Final[Mapping[str, float]] = {"side": 1.0, "cause": 1.5, "category": 2.0, "symptom": 1.5, "retry": 1.0}
_BLIND_WEIGHT: Final = 0.6
_LEANING: Final[Mapping[str, float]] = {"side": 1.0, "cause": 0.5, "symptom": 1.0}
_SPEAKING: Final = frozenset({"category", "symptom"})
_CATALOGUE: Final = ("s:", "sc:", "sk:", "sy:", "sr:")
_STAGES: Final = ("g:", "g1:", "g2:")


@dataclass(frozen=True)
class Table:
    """All samples as one matrix. `columns` names its features.

    `catalogue` marks those that come from the catalogue, `stages` those that only the symptom's head reads.
    """

    samples: Sequence[Sample]
    columns: Mapping[str, int]
    matrix: Any
    catalogue: NDArray[np.bool_]
    stages: NDArray[np.bool_]

    @property
    def names(self) -> tuple[str, ...]:
        """The features in the order of their columns."""
        return tuple(self.columns)


def _vocabulary(samples: Sequence[Sample]) -> dict[str, int]:
    """Features that at least two cases (or one catalogue entry) have, in order of name."""
    seen: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        owner = sample.case.id
        for name in sample.row:
            found = seen[name]
            if len(found) < _LEAST_SEEN:
                found.add(owner)
    kept = sorted(name for name, found in seen.items() if len(found) >= _LEAST_SEEN or name.startswith(_CATALOGUE))
    return {name: column for column, name in enumerate(kept)}


def table_of(samples: Sequence[Sample]) -> Table:
    """The samples as a matrix over the features worth keeping."""
    columns = _vocabulary(samples)
    pointers, indices, data = [0], [], []
    for sample in samples:
        for name, value in sample.row.items():
            column = columns.get(name)
            if column is not None:
                indices.append(column)
                data.append(value)
        pointers.append(len(indices))
    matrix = csr_matrix(
        (np.asarray(data, dtype=np.float32), np.asarray(indices, dtype=np.int32), np.asarray(pointers)),
        shape=(len(samples), len(columns)),
    )
    catalogue, stages = (np.array([name.startswith(heads) for name in columns]) for heads in (_CATALOGUE, _STAGES))
    return Table(samples, columns, matrix, catalogue, stages)


def targets(samples: Sequence[Sample], rows: Sequence[int], axis: str) -> tuple[list[int], list[str], list[float]]:
    """Row numbers, labels and weights of an axis; where experts could defend several labels each stands once.

    The best one gets 3/4, the others share the rest. Of category and symptom a label goes before "none".
    """
    picked: list[int] = []
    labels: list[str] = []
    weights: list[float] = []
    for row in rows:
        sample = samples[row]
        best = sample.case.labels.best[axis]
        if best is None or (axis == "symptom" and best == NONE and sample.may_be_single):
            continue
        if axis == "category" and sample.shows_anyhow:
            continue
        others = [one for one in sample.case.labels.allowed[axis] if one != best]
        if axis in _SPEAKING and best == NONE and others:
            best, *others = others
        picked.append(row)
        labels.append(best)
        weight = sample.weight_for(axis)
        weights.append(weight * (0.75 if others else 1.0))
        for other in others:
            picked.append(row)
            labels.append(other)
            weights.append(weight * 0.25 / len(others))
    if axis in _LEANING:
        _lean(labels, weights, _published(axis), _LEANING[axis])
    return picked, labels, weights


def _published(axis: str) -> dict[str, float]:
    """The published shares of an axis' classes (Gao et al. 2023: side and cause; Liu et al. 2023: symptom)."""
    axes = taxonomy.load()
    entries = {"side": axes.sides, "cause": axes.causes, "symptom": axes.symptoms}[axis]
    return {code: entry.share or 1.0 for code, entry in entries.items()}


def _lean(labels: Sequence[str], weights: list[float], shares: Mapping[str, float], power: float) -> None:
    """Moves the classes' weights (geometrically, `power` of the way) to how often they are met in life.

    Programs that fail are cheaper to write than nodes that do: a corpus shows the user's side three times of four.
    """
    mass: dict[str, float] = defaultdict(float)
    for label, weight in zip(labels, weights, strict=True):
        mass[label] += weight
    total, whole = sum(mass.values()), sum(shares.values())
    for place, label in enumerate(labels):
        if label in shares:
            weights[place] *= ((shares[label] / whole) / (mass[label] / total)) ** power


def _fit_head(table: Table, rows: Sequence[int], axis: str, iterations: int, *, blind: bool) -> tuple[Head, Any, Any]:
    picked, labels, weights = targets(table.samples, rows, axis)
    stacked = table.matrix[picked]
    if axis != "symptom":
        stacked.data[table.stages[stacked.indices]] = 0
        stacked.eliminate_zeros()
    if blind:
        again = [place for place, row in enumerate(picked) if table.samples[row].whole]
        hidden = stacked[again]
        hidden.data[table.catalogue[hidden.indices]] = 0
        hidden.eliminate_zeros()
        stacked = scipy.sparse.vstack([stacked, hidden]).tocsr()
        weights += [weights[place] * _BLIND_WEIGHT for place in again]
        labels += [labels[place] for place in again]
    scale = len(picked) / sum(weights[: len(picked)])
    model = LogisticRegression(C=_SHRINK[axis], solver="saga", max_iter=iterations, tol=1e-3, random_state=0)
    model.fit(stacked, labels, sample_weight=np.asarray(weights, dtype=np.float32) * np.float32(scale))
    classes = tuple(str(one) for one in model.classes_)
    coefficients, intercept = model.coef_, model.intercept_
    if len(classes) == 2:  # noqa: PLR2004 - two classes come as one row
        coefficients, intercept = np.vstack([-coefficients, coefficients]), np.concatenate([-intercept, intercept])
    return Head(axis, classes, 0), coefficients.T, intercept


def fit_text(
    table: Table, rows: Sequence[int], axes: Sequence[str], *, iterations: int = ITERATIONS, blind: bool = True
) -> TextModel:
    """The linear heads of some axes over some rows of the table; two heads at a time."""
    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=2) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many rounds are enough: more would follow single cases
        fitted = list(pool.map(lambda axis: _fit_head(table, rows, axis, iterations, blind=blind), axes))
    heads, begin = [], 0
    for head, _, _ in fitted:
        heads.append(Head(head.axis, head.classes, begin))
        begin += len(head.classes)
    weights = np.hstack([part for _, part, _ in fitted]).astype(np.float32)
    intercept = np.concatenate([one for _, _, one in fitted]).astype(np.float32)
    return TextModel(table.names, tuple(heads), weights, intercept)
