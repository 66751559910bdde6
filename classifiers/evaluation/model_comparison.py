"""Families of models side by side, on programs that none of them has seen: which is the simplest that is good enough.

A family is one program of the fault lab or one data file of compositions: its cases are on the same side of a split,
so that a wording learned from one case of it helps with none of the others. Each predictor is fitted on two thirds of
the families and asked about the rest; each kind of failure counts alike, and causes as often as they are met (Gao et
al. 2023), symptoms as Liu et al. 2023 counted them. `faultline evaluate --compare` prints the table; seconds are those
of fitting one fold.
"""

import time
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression

from classifiers import taxonomy
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import LabelledCase
from classifiers.evaluation import metrics
from classifiers.masking import mask
from classifiers.model import label_fusion, training
from classifiers.model.fitting import Table, fit_text, table_for, targets
from classifiers.model.samples import Sample
from classifiers.signatures import Catalogue

AXES: Final = ("side", "cause", "category", "symptom")
FOLDS: Final = 3
_COMPONENTS: Final = 200
_LANDMARKS: Final = 300
_CHARS: Final = 30_000
_ROUNDS: Final = 10
_TREES: Final = 20
_DENSE: Final = ("s:", "sc:", "sk:", "sy:", "sr:", "e:", "d:")

Scores = NDArray[np.floating[Any]]
Fitted = tuple[Scores, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Row:
    """One predictor: share right by axis (weighted as above), and the seconds that fitting one fold took."""

    name: str
    right: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class _Fold:
    table: Table
    inside: Sequence[int]
    outside: Sequence[int]
    texts: Sequence[str]


def family_of(case: LabelledCase) -> str:
    """The program or data file that a case is from."""
    return str(case.provenance.get("program") or case.group)


def _text(sample: Sample) -> str:
    items = sample.extracted.items
    first = [one for one in items if one.role == "initiating"][:3]
    rest = [one for one in items if one not in first][:4]
    return "\n".join(mask(one.message[:300]) for one in (*first, *rest))


def _learned(fold: _Fold, axis: str, matrix: Any, asked: Any) -> Fitted:
    """A linear model over rows of `matrix`, which stand for all samples; `asked` are the outside's."""
    picked, labels, weights = targets(fold.table.samples, fold.inside, axis)
    model = LogisticRegression(C=2.0, solver="saga", max_iter=_ROUNDS, tol=1e-3, random_state=0)
    model.fit(matrix[picked], labels, sample_weight=np.asarray(weights) * len(weights) / sum(weights))
    return np.log(np.maximum(model.predict_proba(asked), 1e-9)), tuple(str(one) for one in model.classes_)


def _columns(fold: _Fold, keep: Callable[[str], bool]) -> Any:
    columns = [column for column, name in enumerate(fold.table.names) if keep(name)]
    return fold.table.matrix[:, columns]


def _words(fold: _Fold, axis: str) -> Fitted:
    matrix = _columns(fold, lambda name: not name.startswith(("s:", "sc:", "sk:", "sy:", "sr:")))
    return _learned(fold, axis, matrix, matrix[fold.outside])


def _characters(fold: _Fold, axis: str) -> Fitted:
    found = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, max_features=_CHARS, sublinear_tf=True)
    found.fit([fold.texts[row] for row in fold.inside])
    matrix = found.transform(fold.texts) * 3
    return _learned(fold, axis, matrix, matrix[fold.outside])


def _latent(fold: _Fold, axis: str) -> Fitted:
    matrix = _columns(fold, lambda name: name.startswith(("i:", "w:")))
    made = TruncatedSVD(_COMPONENTS, random_state=0).fit(matrix[fold.inside])
    dense = made.transform(matrix)
    return _learned(fold, axis, dense, dense[fold.outside])


def _kernel(fold: _Fold, axis: str) -> Fitted:
    made = Nystroem(kernel="rbf", gamma=0.05, n_components=_LANDMARKS, random_state=0)
    made.fit(fold.table.matrix[fold.inside])
    dense = made.transform(fold.table.matrix)
    return _learned(fold, axis, dense, dense[fold.outside])


def _boosted(fold: _Fold, axis: str) -> Fitted:
    picked, labels, weights = targets(fold.table.samples, fold.inside, axis)
    matrix = _columns(fold, lambda name: name.startswith(_DENSE))
    common = np.argsort(-np.asarray(matrix[fold.inside].getnnz(axis=0)))[:150]
    dense = np.asarray(matrix[:, common].todense())
    model = HistGradientBoostingClassifier(max_iter=_TREES, max_leaf_nodes=12, learning_rate=0.25, random_state=0)
    model.fit(dense[picked], labels, sample_weight=np.asarray(weights) * len(weights) / sum(weights))
    return np.log(np.maximum(model.predict_proba(dense[fold.outside]), 1e-9)), tuple(str(c) for c in model.classes_)


def _both(fold: _Fold, axis: str) -> Fitted:
    matrix = fold.table.matrix
    return _learned(fold, axis, matrix, matrix[fold.outside])


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
STACK: Final = ("text and catalogue: linear", "catalogue and event: boosted trees")


def _stacked(one: Fitted, other: Fitted) -> list[str]:
    """The mean of two models' logarithms, over the classes that both know."""
    classes = [name for name in one[1] if name in other[1]]
    first = one[0][:, [one[1].index(name) for name in classes]]
    second = other[0][:, [other[1].index(name) for name in classes]]
    return [classes[place] for place in (first + second).argmax(axis=1)]


def _rules_too(fold: _Fold, given: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    """The product's own way: linear heads, then the catalogue's votes, the sides and the causes made to agree."""
    text = fit_text(fold.table, fold.inside, labelled_cases.AXES, iterations=_ROUNDS)
    probabilities = text.probabilities(fold.table.matrix[fold.outside])
    judging = label_fusion.Judge(text, given)
    out: dict[str, list[str]] = {axis: [] for axis in AXES}
    for place, row in enumerate(fold.outside):
        own = {axis: values[place] for axis, values in probabilities.items()}
        one = judging.judge(fold.table.samples[row].extracted, own, 1.0)
        labels = {
            "side": one.side,
            "cause": one.causes[0][0],
            "category": one.category,
            "symptom": next((code for code, _ in one.symptoms if code != label_fusion.NONE), label_fusion.NONE),
        }
        for axis in AXES:
            out[axis].append(labels[axis])
    return out


class _Sums:
    """Shares right, by axis; `none` of category and symptom is left out, which a predictor may say or not."""

    def __init__(self, cases: Sequence[LabelledCase]) -> None:
        axes = taxonomy.load()
        self._kinds = Counter(case.kind for case in cases)
        self._met: dict[str, Counter[str]] = {"cause": Counter(), "symptom": Counter()}
        for axis, met in self._met.items():
            for case in cases:
                met[str(case.labels.best[axis])] += 1 / self._kinds[case.kind]  # type: ignore[assignment] # floats
        self._shares = {
            "cause": {code: entry.share or 1.0 for code, entry in axes.causes.items()},
            "symptom": {code: entry.share or 1.0 for code, entry in axes.symptoms.items()},
        }
        self._sums: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))

    def add(self, name: str, axis: str, case: LabelledCase, label: str) -> None:
        """Count one answer."""
        best = case.labels.best[axis]
        if best is None or (axis in {"category", "symptom"} and best == label_fusion.NONE):
            return
        by = "symptom" if axis == "symptom" else "cause"
        key = str(case.labels.best[by])
        weight = self._shares[by].get(key, 1.0) / self._met[by][key] / self._kinds[case.kind]
        found = self._sums[name][axis]
        found[0] += weight * (label in case.labels.allowed[axis])
        found[1] += weight

    def right(self, name: str) -> dict[str, float]:
        """Shares right of one predictor."""
        return {axis: good / total for axis, (good, total) in self._sums[name].items() if total}


def compare(
    cases: Sequence[LabelledCase], catalogue: Catalogue, *, tell: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Every predictor on held-out program families, the plainest first."""
    table = table_for(cases, catalogue, 0)
    texts = [_text(one) for one in table.samples]
    given = training.retry_given(cases)
    sums, seconds = _Sums(cases), Counter[str]()
    for number in range(FOLDS):
        tell(f"fold {number + 1} of {FOLDS}")
        numbered = [
            (row, one, zlib.crc32(family_of(one.case).encode()) % FOLDS) for row, one in enumerate(table.samples)
        ]
        inside = [row for row, one, at in numbered if (at != number or one.example)]
        outside = [row for row, one, at in numbered if at == number and one.window == "whole" and not one.example]
        if not inside or not outside:
            continue
        fold = _Fold(table, inside, outside, texts)
        asked = [table.samples[row].case for row in outside]
        for name, answers in (
            ("majority", metrics.majority([table.samples[row].case for row in inside])[:1] * len(asked)),
            ("signatures alone", metrics.signatures_only([case.raw for case in asked], catalogue)),
        ):
            for case, answer in zip(asked, answers, strict=True):
                for axis in AXES:
                    sums.add(name, axis, case, answer.labels[axis])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for axis in AXES:
                kept: dict[str, Fitted] = {}
                for name, family in FAMILIES.items():
                    began = time.monotonic()
                    kept[name] = family(fold, axis)
                    seconds[name] += time.monotonic() - began  # type: ignore[assignment] # seconds
                    for case, label in zip(asked, _named(kept[name]), strict=True):
                        sums.add(name, axis, case, label)
                for case, label in zip(asked, _stacked(*(kept[name] for name in STACK)), strict=True):
                    sums.add("stack of the last two", axis, case, label)
        began = time.monotonic()
        for axis, labels in _rules_too(fold, given).items():
            for case, label in zip(asked, labels, strict=True):
                sums.add("faultline: linear, then rules", axis, case, label)
        seconds["faultline: linear, then rules"] += time.monotonic() - began  # type: ignore[assignment]
    names = ("majority", "signatures alone", *FAMILIES, "stack of the last two", "faultline: linear, then rules")
    seconds["stack of the last two"] = sum(seconds[name] for name in STACK)
    return [Row(name, sums.right(name), seconds[name] / FOLDS) for name in names]


def markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = ["| | " + " | ".join(AXES) + " | seconds |", "|---|" + "---|" * (len(AXES) + 1)]
    for row in rows:
        cells = [f"{row.right[axis]:.3f}" if axis in row.right else "–" for axis in AXES]
        lines.append(f"| {row.name} | {' | '.join(cells)} | {row.seconds:.1f} |")
    return "\n".join(lines)
