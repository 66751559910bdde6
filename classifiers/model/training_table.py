"""All training samples as one sparse matrix, and the rows, labels and weights of each axis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from classifiers.data.labelled_cases import NONE, LabelledCase
from classifiers.model import constants, line_weights, samples
from classifiers.model.catalogue_examples import example_cases
from classifiers.model.line_weights import EQUAL, LineWeights
from classifiers.model.samples import Sample
from classifiers.model.vectorizer import CATALOGUE_PREFIXES, STAGE_PREFIXES
from classifiers.signatures import Catalogue

Mask = NDArray[np.bool_]
# Axes of which a label is preferred to "none" where experts could defend both.
_LABEL_BEFORE_NONE = frozenset({"category", "symptom"})
# Reports of a symptom seldom give the job's final status, and "failed" is no evidence of a symptom.
_FAILED_STATUS = ("e:status=failed", "w:status", "w:status failed")


@dataclass(frozen=True)
class Targets:
    """Rows of a table with a label and a weight each; a row with several defensible labels appears once for each."""

    rows: list[int]
    labels: list[str]
    weights: list[float]


@dataclass(frozen=True)
class TrainingTable:
    """All samples as a sparse matrix (samples × features). `names` are its features, `sizes` the features a sample has.

    `sizes` counts features that are too rare for a column, too. `lines` says how much the words of each line counted.
    """

    samples: Sequence[Sample]
    names: tuple[str, ...]
    matrix: Any
    sizes: Sequence[int]
    lines: LineWeights = EQUAL

    @cached_property
    def from_catalogue(self) -> Mask:
        """Marks the features that come from the catalogue."""
        return self.mask(lambda name: name.startswith(CATALOGUE_PREFIXES))

    @cached_property
    def for_other_axes(self) -> dict[str, Mask]:
        """By axis the features that its classifier does not read."""
        stages = self.mask(lambda name: name.startswith(STAGE_PREFIXES))
        failed = self.mask(lambda name: name in _FAILED_STATUS)
        return {axis: failed if axis == "symptom" else stages for axis in constants.AXES}

    def mask(self, wanted: Callable[[str], bool]) -> Mask:
        """Marks the features of wanted names."""
        return np.array([wanted(name) for name in self.names], dtype=np.bool_)

    def rows(self, wanted: Callable[[Sample], bool]) -> list[int]:
        """The rows of wanted samples."""
        return [row for row, sample in enumerate(self.samples) if wanted(sample)]

    def targets(self, rows: Sequence[int], axis: str) -> Targets:
        """Rows, labels and weights for an axis.

        The best label gets `constants.BEST_LABEL_SHARE` of the weight, others that experts could defend share the rest.
        """
        found = Targets([], [], [])
        for row in rows:
            sample = self.samples[row]
            weight = sample.weight_for(axis)
            for label, share in label_shares(sample, axis):
                found.rows.append(row)
                found.labels.append(label)
                found.weights.append(weight * share)
        return found


def label_shares(sample: Sample, axis: str) -> list[tuple[str, float]]:
    """The labels of a sample on an axis and their shares, which sum to one; none if it teaches nothing there."""
    best = sample.case.labels.best[axis]
    if best is None or (axis == "symptom" and best == NONE and sample.may_be_single_process):
        return []
    if axis == "category" and sample.has_arbitrary_category:
        return []
    others = [label for label in sample.case.labels.allowed[axis] if label != best]
    if not others:
        return [(best, 1.0)]
    if axis in _LABEL_BEFORE_NONE and best == NONE:
        best, *others = others
        if not others:
            return [(best, 1.0)]
    share = (1 - constants.BEST_LABEL_SHARE) / len(others)
    return [(best, constants.BEST_LABEL_SHARE), *((other, share) for other in others)]


def without_features(matrix: Any, unread: Mask) -> Any:
    """A copy of the matrix in which some features are 0."""
    copy = matrix.copy()
    copy.data[unread[copy.indices]] = 0
    copy.eliminate_zeros()
    return copy


def table_of(taken: Sequence[Sample], lines: LineWeights = EQUAL) -> TrainingTable:
    """The samples, read with these weights of lines, as a table over features of several kinds and of the catalogue."""
    names = _vocabulary(taken)
    columns = {name: column for column, name in enumerate(names)}
    pointers, indices, data = [0], [], []
    for sample in taken:
        for name, value in sample.features.items():
            column = columns.get(name)
            if column is not None:
                indices.append(column)
                data.append(value)
        pointers.append(len(indices))
    arrays = (np.asarray(data, dtype=np.float32), np.asarray(indices, dtype=np.int32), np.asarray(pointers))
    matrix = csr_matrix(arrays, shape=(len(taken), len(names)))
    return TrainingTable(taken, names, matrix, [len(sample.features) for sample in taken], lines)


def table_for(cases: Sequence[LabelledCase], catalogue: Catalogue, seed: int) -> TrainingTable:
    """The table of all views of the cases and of the catalogue's own examples."""
    lines = line_weights.fit(cases, seed)
    return table_of(samples.samples([*cases, *example_cases(catalogue)], catalogue, lines, seed), lines)


def _vocabulary(taken: Sequence[Sample]) -> tuple[str, ...]:
    """Features that enough kinds have, and those of the catalogue; the most frequent first.

    What is read together then lies together in memory: fitting takes a sixth less.
    """
    kinds: dict[str, str] = {}
    counts: dict[str, int] = {}
    several: set[str] = set()
    for sample in taken:
        kind = sample.case.kind
        for name in sample.features:
            counts[name] = counts.get(name, 0) + 1
            if kinds.setdefault(name, kind) != kind:
                several.add(name)
    kept = [name for name in counts if name in several or name.startswith(CATALOGUE_PREFIXES)]
    return tuple(sorted(kept, key=lambda name: (-counts[name], name)))
