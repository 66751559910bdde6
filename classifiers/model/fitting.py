"""First stage: fits one `TextClassifier` for each axis over rows of a training table."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import scipy.sparse

from classifiers import taxonomy
from classifiers.data.labelled_cases import LabelledCase
from classifiers.model import constants
from classifiers.model.estimator import TextClassifier
from classifiers.model.linear_model import Head, TextModel
from classifiers.model.training_table import Mask, Targets, TrainingTable, without_features

_COUNTED_PREFIXES: Final = ("i:", "w:", "x:", "g:", "g1:", "g2:")
_STATUS_PREFIX: Final = "e:status="
# Axes are fitted two at a time: the longest, begun last, would leave one processor idle.
_LONGEST_FIRST: Final = ("symptom", "cause", "category", "side", "retry")


def fit_text(
    table: TrainingTable, rows: Sequence[int], axes: Sequence[str], *, masked_copies: bool = True, seed: int = 0
) -> TextModel:
    """The text model of some axes over some rows of the table.

    Args:
        table: all samples.
        rows: the rows to learn from.
        axes: the axes of the model.
        masked_copies: whether whole cases enter again without the catalogue's features, so that words are learned
            where entries match, too.
        seed: seed of the solver.
    """
    counted = table.mask(lambda name: name.startswith(_COUNTED_PREFIXES))
    with ThreadPoolExecutor(max_workers=2) as pool:
        started = {
            axis: pool.submit(_fit_axis, table, rows, axis, counted, masked_copies=masked_copies, seed=seed)
            for axis in sorted(axes, key=_LONGEST_FIRST.index)
        }
        fitted = [started[axis].result() for axis in axes]
    heads, begin = [], 0
    for axis, classifier in zip(axes, fitted, strict=True):
        heads.append(Head(axis, tuple(str(label) for label in classifier.classes_), begin))
        begin += len(classifier.classes_)
    weights = np.hstack([classifier.coef_ for classifier in fitted]).astype(np.float32)
    intercept = np.concatenate([classifier.intercept_ for classifier in fitted]).astype(np.float32)
    return TextModel(table.names, tuple(heads), weights, intercept)


def rounded(text: TextModel) -> TextModel:
    """The model with weights as they are stored: half precision, small ones 0, features without any weight left out.

    What is small is measured against the largest weight of the class.
    """
    weights = text.weights.copy()
    weights[np.abs(weights) < constants.SMALL_WEIGHT * np.abs(weights).max(axis=0, initial=0.0)] = 0
    weights = weights.astype(np.float16).astype(np.float32)
    kept = np.asarray(weights.any(axis=1))
    names = tuple(name for name, keep in zip(text.names, kept, strict=True) if keep)
    return TextModel(names, text.heads, weights[kept], text.intercept)


def with_site_prior(text: TextModel, cases: Sequence[LabelledCase]) -> TextModel:
    """The model with intercepts of causes moved to what an operator's own cases show; the same without such cases."""
    own = Counter(str(case.labels.best["cause"]) for case in cases if case.provenance.get("origin") == "operator")
    total = sum(own.values())
    if not total:
        return text
    head = text.head("cause")
    everywhere = Counter(str(case.labels.best["cause"]) for case in cases)
    intercept = text.intercept.copy()
    prior = constants.SITE_PRIOR_CASES
    for place, code in enumerate(head.classes):
        share = (everywhere[code] + 1) / (len(cases) + len(head.classes))
        intercept[head.begin + place] += np.log((own[code] + prior * share) / (total + prior) / share)
    return TextModel(text.names, text.heads, text.weights, intercept)


def published_shares(axis: str) -> dict[str, float]:
    """The published shares of an axis' classes; none for axes without a publication."""
    axes = taxonomy.load()
    entries: dict[str, Any] = {"side": axes.sides, "cause": axes.causes, "symptom": axes.symptoms}
    return {code: entry.share or 1.0 for code, entry in entries.get(axis, {}).items()}


def _fit_axis(
    table: TrainingTable, rows: Sequence[int], axis: str, counted: Mask, *, masked_copies: bool, seed: int
) -> TextClassifier:
    targets = table.targets(rows, axis)
    matrix = without_features(table.matrix[targets.rows], table.for_other_axes[axis])
    labels, weights = targets.labels, np.asarray(targets.weights)
    if masked_copies:
        matrix, labels, weights = _with_masked_copies(table, axis, targets, matrix)
    classifier = TextClassifier(
        inverse_penalty=constants.INVERSE_PENALTY[axis],
        word_count_share=constants.WORD_COUNT_SHARE[axis],
        counted_features=counted,
        class_prior=published_shares(axis),
        prior_shift=constants.PRIOR_SHIFT.get(axis, 0.0),
        random_state=seed,
    )
    return classifier.fit(matrix, np.asarray(labels), sample_weight=weights)


def _with_masked_copies(table: TrainingTable, axis: str, targets: Targets, matrix: Any) -> tuple[Any, list[str], Any]:
    """The rows, then whole cases again without the catalogue's features (for symptoms without the status, too)."""
    whole = [place for place, row in enumerate(targets.rows) if table.samples[row].is_whole]
    unread = table.from_catalogue
    if axis == "symptom":
        unread = unread | table.mask(lambda name: name.startswith(_STATUS_PREFIX))
    weights = np.asarray(targets.weights)
    return (
        scipy.sparse.vstack([matrix, without_features(matrix[whole], unread)]).tocsr(),
        targets.labels + [targets.labels[place] for place in whole],
        np.concatenate([weights, weights[whole] * constants.MASKED_COPY_WEIGHT]),
    )
