"""All training samples as one sparse matrix, and the rows, labels and weights of each axis."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from classifiers.data.labelled_cases import NONE, LabelledCase
from classifiers.model import constants, line_weights, samples
from classifiers.model.beginnings import Candidates
from classifiers.model.catalogue_examples import example_cases
from classifiers.model.label_fusion import FusedLabels
from classifiers.model.line_weights import EQUAL, LineWeights
from classifiers.model.packaged_scores import PackagedClassifier
from classifiers.model.samples import Sample, read_whole
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
    """The samples, read with these weights of lines, as a table over features of several kinds and of the catalogue.

    The columns begin with the most frequent features. What is read together then lies together in memory: fitting takes
    a sixth less.
    """
    columns: dict[str, int] = {}
    indices, data = array("q"), array("d")
    for sample in taken:
        indices.extend([columns.setdefault(name, len(columns)) for name in sample.features])
        data.extend(sample.features.values())
    found, sizes = np.asarray(indices), [len(sample.features) for sample in taken]
    names, place = _vocabulary(list(columns), found, np.repeat(_kinds_of(taken), sizes))
    known = place[found] >= 0
    pointers = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)]
    arrays = (np.asarray(data, dtype=np.float32)[known], place[found][known].astype(np.int32), pointers)
    return TrainingTable(taken, names, csr_matrix(arrays, shape=(len(taken), len(names))), sizes, lines)


def table_for(cases: Sequence[LabelledCase], catalogue: Catalogue, seed: int) -> TrainingTable:
    """The table of all views of the cases and of the catalogue's own examples."""
    lines = line_weights.fit(cases, seed)
    return table_of(samples.samples([*cases, *example_cases(catalogue)], catalogue, lines, seed), lines)


def _kinds_of(taken: Sequence[Sample]) -> NDArray[np.int64]:
    """The number of the kind of each sample."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(sample.case.kind, len(numbers)) for sample in taken], dtype=np.int64)


def _vocabulary(
    every: Sequence[str], found: NDArray[np.int64], kinds: NDArray[np.int64]
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Features that several kinds have and those of the catalogue, the most frequent first.

    Args:
        every: all features.
        found: of each occurrence the number of the feature in `every`.
        kinds: of each occurrence the number of the kind.

    Returns:
        Their names, and of each feature of `every` its place among them, -1 for none.
    """
    counts = np.bincount(found, minlength=len(every)).tolist()
    of_one = np.zeros(len(every), dtype=np.int64)
    of_one[found] = kinds  # of a feature of several kinds one of them, from which another one differs
    several = np.zeros(len(every), dtype=np.bool_)
    several[found[of_one[found] != kinds]] = True
    kept = [
        number
        for number, (name, is_shared) in enumerate(zip(every, several.tolist(), strict=True))
        if is_shared or name.startswith(CATALOGUE_PREFIXES)
    ]
    kept.sort(key=lambda number: (-counts[number], every[number]))
    place = np.full(len(every), -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return tuple(every[number] for number in kept), place


class SampledCases:
    """Candidates and labels of cases, those of the samples of a table without reading them again.

    Args:
        classifier: gives the labels; it reads the other cases.
        table: the table that the classifier's model was fitted on.
    """

    def __init__(self, classifier: PackagedClassifier, table: TrainingTable) -> None:
        self._classifier = classifier
        self._known = {one.case.id: one.whole for one in table.samples if one.whole is not None}

    def candidates_and_labels(self, cases: Sequence[LabelledCase]) -> list[tuple[Candidates, FusedLabels]]:
        """Candidates and labels of each case of a batch of at least one, in order."""
        extractor, lines = self._classifier.extractor, self._classifier.model.lines
        read = [self._known.get(case.id) or read_whole(extractor, case.raw, lines) for case in cases]
        labels = self._classifier.labels_of([one.features for one in read], [one.fusion for one in read])
        return [(one.candidates, found) for one, found in zip(read, labels, strict=True)]
