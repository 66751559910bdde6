"""Fits the linear heads over samples. Words are learned with the catalogue's features and, again, without them."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from classifiers import taxonomy
from classifiers.data.labelled_cases import NONE, LabelledCase
from classifiers.model import samples as sampling
from classifiers.model.linear_model import Head, TextModel
from classifiers.model.samples import Sample
from classifiers.signatures import Catalogue

ITERATIONS: Final = 14
_SHRINK: Final[Mapping[str, float]] = {"side": 0.3, "cause": 0.3, "category": 0.8, "symptom": 0.2, "retry": 0.4}
_BLIND_WEIGHT: Final = 0.6
# Of samples composed for another axis every so many-th is learned, and weighs for those that are not; a case is cut
# into two, three or four windows, and this is a multiple of none of them.
_ASIDE_EVERY: Final = 5
# A fitted weight serves the cases it was fitted on: of wordings that few of them have little is left. How much more
# often a class has a feature than all have tells of those too: so much of that logarithm (naive Bayes') is added.
_COUNTED: Final[Mapping[str, float]] = {"side": 0.03, "cause": 0.015, "category": 0.03, "symptom": 0.04, "retry": 0.03}
_COUNTED_OF: Final = ("i:", "w:", "x:", "g:", "g1:", "g2:")
_UNSEEN: Final = 0.05
# Programs that fail are cheaper to write than nodes that do: a corpus shows the user's side three times of four. So
# much of the way the classes' intercepts are moved from the corpus' shares to how often they are met in life.
_MET: Final[Mapping[str, float]] = {"side": 0.5, "cause": 0.5, "symptom": 0.5}
# The solver's step is made for samples that weigh about one: heavier ones would throw it about, round after round, and
# stand several times, lighter, instead.
_HEAVIEST: Final = 3.0
# Heads are fitted two at a time: the longest begun last would keep one core idle.
_LONGEST_FIRST: Final = ("symptom", "cause", "category", "side", "retry")
_SPEAKING: Final = frozenset({"category", "symptom"})
_CATALOGUE: Final = ("s:", "sc:", "sk:", "sy:", "sr:")
_STAGES: Final = ("g:", "g1:", "g2:")
# How a job ended is seldom known where a symptom is asked about: that it failed says nothing of which, and that it hung
# or ran into its limit is learned with that fact and without.
_ENDED: Final = "e:status="
_ENDED_FAILED: Final = ("e:status=failed", "w:status", "w:status failed")

_Weights: TypeAlias = NDArray[np.float64]


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

    def columns_of(self, names: Sequence[str], beginning: str | None = None) -> NDArray[np.bool_]:
        """Marks the features of these names, and those whose name begins so."""
        marked = np.zeros(len(self.columns), dtype=np.bool_)
        picked = [*names, *(one for one in self.columns if beginning is not None and one.startswith(beginning))]
        marked[[self.columns[one] for one in picked if one in self.columns]] = True
        return marked

    @property
    def names(self) -> tuple[str, ...]:
        """The features in the order of their columns."""
        return tuple(self.columns)


def _vocabulary(samples: Sequence[Sample]) -> dict[str, int]:
    """Features that at least two cases (or one catalogue entry) have; the commonest first.

    What is read together then lies together in memory: fitting takes a sixth less.
    """
    first: dict[str, str] = {}
    again: set[str] = set()
    met: Counter[str] = Counter()
    for sample in samples:
        owner = sample.case.id
        for name in sample.row:
            met[name] += 1
            if first.setdefault(name, owner) != owner:
                again.add(name)
    kept = [name for name in met if name in again or name.startswith(_CATALOGUE)]
    kept.sort(key=lambda name: (-met[name], name))
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


def table_for(cases: Sequence[LabelledCase], catalogue: Catalogue, seed: int) -> Table:
    """The table of all windows of the cases and of the catalogue's own examples."""
    return table_of(sampling.samples([*cases, *sampling.example_cases(catalogue)], catalogue, seed))


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
        aside = sample.is_aside(axis)
        if aside and row % _ASIDE_EVERY:
            continue
        others = [one for one in sample.case.labels.allowed[axis] if one != best]
        if axis in _SPEAKING and best == NONE and others:
            best, *others = others
        picked.append(row)
        labels.append(best)
        weight = sample.weight_for(axis) * (_ASIDE_EVERY if aside else 1)
        weights.append(weight * (0.75 if others else 1.0))
        for other in others:
            picked.append(row)
            labels.append(other)
            weights.append(weight * 0.25 / len(others))
    return picked, labels, weights


def _published(axis: str) -> dict[str, float]:
    """The published shares of an axis' classes (Gao et al. 2023: side and cause; Liu et al. 2023: symptom)."""
    axes = taxonomy.load()
    entries = {"side": axes.sides, "cause": axes.causes, "symptom": axes.symptoms}[axis]
    return {code: entry.share or 1.0 for code, entry in entries.items()}


def _masses(labels: NDArray[np.str_], weights: _Weights, classes: Sequence[str]) -> Any:
    """The weight of each class, as a matrix rows x classes that adds up what rows have."""
    places = {one: place for place, one in enumerate(classes)}
    columns = [places[one] for one in labels]
    return csr_matrix((weights, (np.arange(len(labels)), columns)), shape=(len(labels), len(classes)))


def _counted(table: Table, stacked: Any, told: Any, much: float) -> NDArray[np.float64]:
    """What counting adds to an axis' weights (features x classes); `told`: `_masses` of the rows."""
    counts = np.asarray((stacked.T @ told).todense(), dtype=np.float64)
    counts[[not name.startswith(_COUNTED_OF) for name in table.columns]] = 0
    seen = counts.sum(axis=1) > 0
    added = np.zeros_like(counts)
    if seen.any():
        everywhere = (counts.sum(axis=1) / counts.sum())[seen, np.newaxis]
        shares = (counts[seen] / np.maximum(counts.sum(axis=0), 1e-9) + _UNSEEN * everywhere) / (1 + _UNSEEN)
        added[seen] = much * np.log(shares / everywhere)
    return added


def _met(axis: str, told: Any, classes: Sequence[str]) -> NDArray[np.float64]:
    """What is added to the intercepts of the classes whose shares are published."""
    shares, mass = _published(axis), np.asarray(told.sum(axis=0)).ravel()
    known = [place for place, one in enumerate(classes) if one in shares]
    added = np.zeros(len(classes))
    if known:
        published = np.array([shares[classes[place]] for place in known])
        here = mass[known] / mass[known].sum()
        added[known] = _MET[axis] * np.log(published / published.sum() / here)
    return added


def _merged(matrix: Any, labels: Sequence[str], weights: _Weights) -> tuple[Any, NDArray[np.str_], _Weights]:
    """The rows, labels and weights with equal rows of one label as one that weighs as much: a quarter of the work less.

    Rows count as equal if two random sums of their features are.
    """
    sums = matrix @ np.random.default_rng(0).random((matrix.shape[1], 2))
    told, codes = np.unique(np.asarray(labels), return_inverse=True)
    _, first, group = np.unique(np.column_stack([sums, codes]), axis=0, return_index=True, return_inverse=True)
    heavy = np.bincount(group.ravel(), weights=weights).astype(np.float64)
    return matrix[first], told[codes[first]], heavy


def _fit_head(table: Table, rows: Sequence[int], axis: str, iterations: int, *, blind: bool) -> tuple[Head, Any, Any]:
    picked, labels, weights = targets(table.samples, rows, axis)
    stacked = table.matrix[picked]
    unread = table.columns_of(_ENDED_FAILED) if axis == "symptom" else table.stages
    stacked.data[unread[stacked.indices]] = 0
    stacked.eliminate_zeros()
    if blind:
        whole = [place for place, row in enumerate(picked) if table.samples[row].whole]
        hidden = stacked[whole]
        unread = table.catalogue | table.columns_of((), _ENDED) if axis == "symptom" else table.catalogue
        hidden.data[unread[hidden.indices]] = 0
        hidden.eliminate_zeros()
        stacked = scipy.sparse.vstack([stacked, hidden]).tocsr()
        weights += [weights[place] * _BLIND_WEIGHT for place in whole]
        labels += [labels[place] for place in whole]
    scale = len(picked) / sum(weights[: len(picked)])
    model = LogisticRegression(C=_SHRINK[axis], solver="saga", max_iter=iterations, tol=1e-3, random_state=0)
    stacked, named, scaled = _merged(stacked, labels, np.asarray(weights) * scale)
    times = np.maximum(1, np.ceil(scaled / _HEAVIEST)).astype(np.int64)
    again = np.repeat(np.arange(len(times)), times)
    model.fit(stacked[again], named[again], sample_weight=(scaled / times)[again])
    classes = tuple(str(one) for one in model.classes_)
    coefficients, intercept = model.coef_, model.intercept_
    if len(classes) == 2:  # noqa: PLR2004 - two classes come as one row
        coefficients, intercept = np.vstack([-coefficients, coefficients]), np.concatenate([-intercept, intercept])
    told, coefficients = _masses(named, scaled, classes), coefficients.T
    if axis in _COUNTED:
        coefficients = coefficients + _counted(table, stacked, told, _COUNTED[axis])
    if axis in _MET:
        intercept = intercept + _met(axis, told, classes)
    return Head(axis, classes, 0), coefficients, intercept


def fit_text(
    table: Table, rows: Sequence[int], axes: Sequence[str], *, iterations: int = ITERATIONS, blind: bool = True
) -> TextModel:
    """The linear heads of some axes over some rows of the table; two heads at a time."""
    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=2) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many rounds are enough: more would follow single cases
        started = {
            axis: pool.submit(_fit_head, table, rows, axis, iterations, blind=blind)
            for axis in sorted(axes, key=_LONGEST_FIRST.index)
        }
        fitted = [started[axis].result() for axis in axes]
    heads, begin = [], 0
    for head, _, _ in fitted:
        heads.append(Head(head.axis, head.classes, begin))
        begin += len(head.classes)
    weights = np.hstack([part for _, part, _ in fitted]).astype(np.float32)
    intercept = np.concatenate([one for _, _, one in fitted]).astype(np.float32)
    return TextModel(table.names, tuple(heads), weights, intercept)
