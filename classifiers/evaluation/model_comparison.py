"""Comparison of model types on failures that none of them has seen.

A family is one program of the fault lab or one file of composed kinds (`held_out.family_of`). Its cases are on the same
side of a split, so that wording learned from one of them helps with none of the others. Each predictor is fitted on two
thirds of the families and evaluated on the rest. Each kind of failure has the same weight; causes are weighted by the
shares of Gao et al. 2023, symptoms by those of Liu et al. 2023. `faultline evaluate --compare` prints the table;
seconds are those of fitting one fold.
"""

import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from classifiers import taxonomy
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import baselines
from classifiers.evaluation.held_out import family_of
from classifiers.evaluation.metrics import Answer
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.masking import mask
from classifiers.model import training
from classifiers.model.case_views import WHOLE
from classifiers.model.fitting import fit_text
from classifiers.model.fusion_fitting import fit_second_stage, held_out_stage
from classifiers.model.label_fusion import NONE, LabelFusion
from classifiers.model.samples import Sample
from classifiers.model.training_table import TrainingTable, table_for
from classifiers.signatures import Catalogue

_COMPARED: Final = ("side", "cause", "category", "symptom")
FOLDS: Final = 3
_COMPONENTS: Final = 200
_LANDMARKS: Final = 300
_CHARS: Final = 30_000
_TOLERANCE: Final = 0.02
_PASSES: Final = 2_000
_TREES: Final = 20
_DENSE: Final = ("s:", "sc:", "sk:", "sy:", "sr:", "e:", "d:")

Scores = NDArray[np.floating[Any]]
Fitted = tuple[Scores, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One predictor: accuracy by axis (weighted as above), and the seconds of fitting one fold."""

    name: str
    right: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class _Fold:
    """Rows to learn from, rows to be evaluated, and of all rows the leading lines."""

    table: TrainingTable
    inside: Sequence[int]
    outside: Sequence[int]
    texts: Sequence[str]


def _leading_lines(sample: Sample, extractor: Extractor) -> str:
    items = extractor.extract(sample.raw).items
    first = [item for item in items if item.role == "initiating"][:3]
    rest = [item for item in items if item not in first][:4]
    return "\n".join(mask(item.message[:300]) for item in (*first, *rest))


def _linear(fold: _Fold, axis: str, matrix: Any, outside: Any) -> Fitted:
    """A linear model over the inside rows of `matrix`, which has all samples; `outside` has the rows to evaluate."""
    targets = fold.table.targets(fold.inside, axis)
    weights = np.asarray(targets.weights)
    solver = "saga" if issparse(matrix) else "lbfgs"
    model = LogisticRegression(C=2.0, solver=solver, max_iter=_PASSES, tol=_TOLERANCE, random_state=0)
    model.fit(matrix[targets.rows], targets.labels, sample_weight=weights * len(weights) / weights.sum())
    return np.log(np.maximum(model.predict_proba(outside), 1e-9)), tuple(str(name) for name in model.classes_)


def _columns(fold: _Fold, keep: Callable[[str], bool]) -> Any:
    columns = [column for column, name in enumerate(fold.table.names) if keep(name)]
    return fold.table.matrix[:, columns]


def _words(fold: _Fold, axis: str) -> Fitted:
    matrix = _columns(fold, lambda name: not name.startswith(("s:", "sc:", "sk:", "sy:", "sr:")))
    return _linear(fold, axis, matrix, matrix[fold.outside])


def _characters(fold: _Fold, axis: str) -> Fitted:
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), min_df=3, max_features=_CHARS, sublinear_tf=True
    )
    vectorizer.fit([fold.texts[row] for row in fold.inside])
    matrix = vectorizer.transform(fold.texts) * 3
    return _linear(fold, axis, matrix, matrix[fold.outside])


def _latent(fold: _Fold, axis: str) -> Fitted:
    matrix = _columns(fold, lambda name: name.startswith(("i:", "w:")))
    projection = TruncatedSVD(_COMPONENTS, random_state=0).fit(matrix[fold.inside])
    dense = projection.transform(matrix)
    return _linear(fold, axis, dense, dense[fold.outside])


def _kernel(fold: _Fold, axis: str) -> Fitted:
    kernel = Nystroem(kernel="rbf", gamma=0.05, n_components=_LANDMARKS, random_state=0)
    kernel.fit(fold.table.matrix[fold.inside])
    dense = kernel.transform(fold.table.matrix)
    return _linear(fold, axis, dense, dense[fold.outside])


def _boosted(fold: _Fold, axis: str) -> Fitted:
    targets = fold.table.targets(fold.inside, axis)
    weights = np.asarray(targets.weights)
    matrix = _columns(fold, lambda name: name.startswith(_DENSE))
    common = np.argsort(-np.asarray(matrix[fold.inside].getnnz(axis=0)))[:150]
    dense = np.asarray(matrix[:, common].todense())
    model = HistGradientBoostingClassifier(max_iter=_TREES, max_leaf_nodes=12, learning_rate=0.25, random_state=0)
    model.fit(dense[targets.rows], targets.labels, sample_weight=weights * len(weights) / weights.sum())
    return np.log(np.maximum(model.predict_proba(dense[fold.outside]), 1e-9)), tuple(str(c) for c in model.classes_)


def _both(fold: _Fold, axis: str) -> Fitted:
    matrix = fold.table.matrix
    return _linear(fold, axis, matrix, matrix[fold.outside])


def _named(fitted: Fitted) -> list[str]:
    scores, classes = fitted
    return [classes[place] for place in scores.argmax(axis=1)]


FAMILIES: Final[Mapping[str, Callable[[_Fold, str], Fitted]]] = {
    "text only: linear, words": _words,
    "text only: linear, characters": _characters,
    "text only: latent semantics": _latent,
    "text and catalogue: kernel": _kernel,
    "catalogue and event: boosted trees": _boosted,
    "text and catalogue: linear": _both,
}
_STACKED: Final = "stack of the last two"
_PRODUCT: Final = "faultline: linear, then fusion"
STACK: Final = ("text and catalogue: linear", "catalogue and event: boosted trees")


def _stacked(one: Fitted, other: Fitted) -> list[str]:
    """The mean of two models' logarithms, over the classes that both know."""
    classes = [name for name in one[1] if name in other[1]]
    first = one[0][:, [one[1].index(name) for name in classes]]
    second = other[0][:, [other[1].index(name) for name in classes]]
    return [classes[place] for place in (first + second).argmax(axis=1)]


def _product(fold: _Fold, cases: Sequence[LabelledCase], catalogue: Catalogue) -> dict[str, list[str]]:
    """The product's own way: linear classifiers, then label fusion, both fitted on the inside rows alone."""
    table, inside = fold.table, fold.inside
    retry_by_cause = training.retry_shares(cases)
    own = TrainingTable(
        [table.samples[row] for row in inside], table.names, table.matrix[inside], [table.sizes[row] for row in inside]
    )
    second = fit_second_stage(held_out_stage(own, 0, lambda _: None), retry_by_cause, catalogue, 0)
    text = fit_text(table, inside, labelled_cases.AXES)
    fusion = LabelFusion(text.classes, second.coefficients, retry_by_cause, catalogue, second.category_threshold)
    probabilities = text.probabilities(table.matrix[fold.outside])
    inputs = [table.samples[row].fusion for row in fold.outside]
    labels = fusion.labels(inputs, probabilities, [1.0] * len(inputs))
    return {
        "side": [label.side for label in labels],
        "cause": [label.causes[0][0] for label in labels],
        "category": [label.category for label in labels],
        "symptom": [next((code for code, _ in label.symptoms if code != NONE), NONE) for label in labels],
    }


class _Sums:
    """Accuracy by predictor and axis. Cases whose category or symptom is "none" are left out of that axis."""

    def __init__(self, cases: Sequence[LabelledCase]) -> None:
        axes = taxonomy.load()
        self._kinds = Counter(case.kind for case in cases)
        self._counts: dict[str, Counter[str]] = {"cause": Counter(), "symptom": Counter()}
        for axis, counts in self._counts.items():
            for case in cases:
                counts[str(case.labels.best[axis])] += 1 / self._kinds[case.kind]  # type: ignore[assignment] # floats
        self._shares = {
            "cause": {code: entry.share or 1.0 for code, entry in axes.causes.items()},
            "symptom": {code: entry.share or 1.0 for code, entry in axes.symptoms.items()},
        }
        self._sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def add(self, name: str, axis: str, case: LabelledCase, label: str) -> None:
        """Count one answer."""
        best = case.labels.best[axis]
        if best is None or (axis in {"category", "symptom"} and best == NONE):
            return
        by = "symptom" if axis == "symptom" else "cause"
        key = str(case.labels.best[by])
        weight = self._shares[by].get(key, 1.0) / self._counts[by][key] / self._kinds[case.kind]
        found = self._sums[name][axis]
        found[0] += weight * (label in case.labels.allowed[axis])
        found[1] += weight

    def right(self, name: str) -> dict[str, float]:
        """Accuracy of one predictor, by axis."""
        return {axis: good / total for axis, (good, total) in self._sums[name].items() if total}


def compare(
    cases: Sequence[LabelledCase], catalogue: Catalogue, *, progress: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Every predictor on held-out families, the plainest first."""
    table = table_for(cases, catalogue, 0)
    extractor = Extractor(Scanner(catalogue))
    texts = [_leading_lines(sample, extractor) for sample in table.samples]
    parts = [zlib.crc32(family_of(sample.case).encode()) % FOLDS for sample in table.samples]
    comparison = _Comparison(cases)
    for number in range(FOLDS):
        progress(f"fold {number + 1} of {FOLDS}")
        numbered = list(enumerate(zip(table.samples, parts, strict=True)))
        inside = [row for row, (one, part) in numbered if part != number or one.is_example]
        outside = [row for row, (one, part) in numbered if part == number and one.view == WHOLE and not one.is_example]
        if inside and outside:
            comparison.add_fold(_Fold(table, inside, outside, texts), cases, catalogue)
    return comparison.rows()


class _Comparison:
    """Accuracies and seconds of all predictors over the folds."""

    def __init__(self, cases: Sequence[LabelledCase]) -> None:
        self._sums = _Sums(cases)
        self._seconds: dict[str, float] = defaultdict(float)

    def add_fold(self, fold: _Fold, cases: Sequence[LabelledCase], catalogue: Catalogue) -> None:
        """Fit and evaluate every predictor on one fold."""
        outside_cases = [fold.table.samples[row].case for row in fold.outside]
        learned = [fold.table.samples[row].case for row in fold.inside]
        self._add_answers("majority", outside_cases, baselines.majority(learned)[:1] * len(outside_cases))
        self._add_answers(
            "signatures alone",
            outside_cases,
            baselines.signatures_only([case.raw for case in outside_cases], catalogue),
        )
        for axis in _COMPARED:
            fitted: dict[str, Fitted] = {}
            for name, family in FAMILIES.items():
                began = time.monotonic()
                fitted[name] = family(fold, axis)
                self._seconds[name] += time.monotonic() - began
                self._add(name, axis, outside_cases, _named(fitted[name]))
            self._add(_STACKED, axis, outside_cases, _stacked(*(fitted[name] for name in STACK)))
        began = time.monotonic()
        for axis, labels in _product(fold, cases, catalogue).items():
            self._add(_PRODUCT, axis, outside_cases, labels)
        self._seconds[_PRODUCT] += time.monotonic() - began

    def rows(self) -> list[Row]:
        """One row for each predictor."""
        self._seconds[_STACKED] = sum(self._seconds[name] for name in STACK)
        names = ("majority", "signatures alone", *FAMILIES, _STACKED, _PRODUCT)
        return [Row(name, self._sums.right(name), self._seconds[name] / FOLDS) for name in names]

    def _add(self, name: str, axis: str, outside_cases: Sequence[LabelledCase], labels: Sequence[str]) -> None:
        for case, label in zip(outside_cases, labels, strict=True):
            self._sums.add(name, axis, case, label)

    def _add_answers(self, name: str, outside_cases: Sequence[LabelledCase], answers: Sequence[Answer]) -> None:
        for axis in _COMPARED:
            self._add(name, axis, outside_cases, [answer.labels[axis] for answer in answers])


def markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = ["| | " + " | ".join(_COMPARED) + " | seconds |", "|---|" + "---|" * (len(_COMPARED) + 1)]
    for row in rows:
        cells = [f"{row.right[axis]:.3f}" if axis in row.right else "–" for axis in _COMPARED]
        lines.append(f"| {row.name} | {' | '.join(cells)} | {row.seconds:.1f} |")
    return "\n".join(lines)
