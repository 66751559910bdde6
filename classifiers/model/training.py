"""Fits, calibrates and describes a model of labelled cases and the catalogue's own examples. Reproducible: seed, data.

An operator's own cases (`faultline train --add`) count `samples.OPERATOR_WEIGHT` times a packaged one. Their causes
also set the prior of the site: by the intercepts, `SITE_CASES` own cases weigh as much as the whole corpus' shares.
"""

import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression

from classifiers import signatures, taxonomy
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import AXES, LabelledCase
from classifiers.model import label_fusion
from classifiers.model.artifact import Model
from classifiers.model.fitting import Table, fit_text, table_for
from classifiers.model.label_fusion import Calibration
from classifiers.model.linear_model import TextModel
from classifiers.model.samples import FOLDS, Sample
from classifiers.signatures import Catalogue

NAME: Final = "faultline-text"
VERSION: Final = "1"
WEAK_CLASS: Final = 10
SITE_CASES: Final = 20
FOLD_ITERATIONS: Final = 10
CALIBRATED_AXES: Final = ("side", "cause", "retry")
_ANSWER_RIGHT: Final = 0.985
_MOST_ABSTAINED: Final = 0.08


@dataclass(slots=True)
class Report:
    """What training has to tell: figures by name, classes with few cases, seconds by step."""

    cases: int = 0
    samples: int = 0
    kinds: int = 0
    weak: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)


def retry_given(cases: Iterable[LabelledCase]) -> dict[str, dict[str, float]]:
    """P(retry outlook | cause), smoothed by the side's shares."""
    axes = taxonomy.load()
    outlooks = ("helps", "helps_elsewhere", "after_repair", "futile")
    by_cause: dict[str, Counter[str]] = defaultdict(Counter)
    by_side: dict[str, Counter[str]] = defaultdict(Counter)
    kinds = Counter(case.kind for case in cases)
    for case in cases:
        cause, retry = case.labels.best["cause"], case.labels.best["retry"]
        if cause is None or retry is None:
            continue
        weight = 1.0 / kinds[case.kind]
        by_cause[cause][retry] += weight  # type: ignore[assignment] # Counter of floats
        by_side[axes.side_of(cause)][retry] += weight  # type: ignore[assignment]
    out = {}
    for code in axes.causes:
        side = by_side[axes.side_of(code)]
        total = sum(side.values()) + 1.0
        counts = by_cause[code]
        shares = {one: counts[one] + 2.0 * (side[one] + 0.25) / total for one in outlooks}
        whole = sum(shares.values())
        out[code] = {one: value / whole for one, value in shares.items()}
    return out


def _judged(
    table: Table, inside: Sequence[int], outside: Sequence[int], given: Mapping[str, Mapping[str, float]]
) -> list[label_fusion.Judgement]:
    """The judgements of some rows by heads fitted on others; a feature that the others lack counts as not known."""
    text = fit_text(table, inside, CALIBRATED_AXES, iterations=FOLD_ITERATIONS, blind=False)
    met = np.asarray(table.matrix[inside].getnnz(axis=0)) > 0
    matrix = table.matrix[outside]
    known = matrix[:, met].getnnz(axis=1)
    shares = [float(some) / max(1, len(table.samples[row].row)) for some, row in zip(known, outside, strict=True)]
    extracted = [table.samples[row].extracted for row in outside]
    return label_fusion.Judge(text, given).judge_all(extracted, text.probabilities(matrix), shares)


def calibrate(signals: Sequence[Sequence[float]], right: Sequence[bool], weights: Sequence[float]) -> Calibration:
    """The curve and the threshold from held-out judgements."""
    made = LogisticRegression(C=1.0, max_iter=200)
    made.fit(np.asarray(signals), np.asarray(right), sample_weight=np.asarray(weights) * len(weights) / sum(weights))
    curve = Calibration(tuple(float(one) for one in made.coef_[0]), float(made.intercept_[0]), 0.0)
    told = np.array([curve.confidence(one) for one in signals])
    order = np.argsort(told)
    share = np.asarray(weights)[order] / sum(weights)
    correct = np.asarray(right, dtype=float)[order] * share
    threshold = 0.0
    for place in range(len(order)):
        left = share[place:].sum()
        if 1 - left > _MOST_ABSTAINED:
            break
        threshold = float(told[order[place]])
        if correct[place:].sum() / left >= _ANSWER_RIGHT:
            break
    return Calibration(curve.weights, curve.intercept, threshold)


def site_prior(text: TextModel, cases: Sequence[LabelledCase]) -> TextModel:
    """The model with the intercepts of its causes moved to what an operator's own cases show; the same without any."""
    own = Counter(str(case.labels.best["cause"]) for case in cases if case.provenance.get("origin") == "operator")
    total = sum(own.values())
    if not total:
        return text
    head = text.head("cause")
    everywhere = Counter(str(case.labels.best["cause"]) for case in cases)
    intercept = text.intercept.copy()
    for place, code in enumerate(head.classes):
        share = (everywhere[code] + 1) / (len(cases) + len(head.classes))
        intercept[head.begin + place] += np.log((own[code] + SITE_CASES * share) / (total + SITE_CASES) / share)
    return TextModel(text.names, text.heads, text.weights, intercept)


def train(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue | None = None,
    *,
    seed: int = 0,
    now: datetime | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[Model, Report]:
    """A model of the cases and the catalogue's examples, with a report."""
    report = Report(cases=len(cases), kinds=len({case.kind for case in cases}))
    began = time.monotonic()
    entries = catalogue or signatures.packaged()
    table = table_for(cases, entries, seed)
    report.samples = len(table.samples)
    report.seconds["reading"] = time.monotonic() - began
    tell(f"{len(cases)} cases of {report.kinds} kinds, {len(table.samples)} samples, {len(table.columns)} features")
    given = retry_given(cases)
    began = time.monotonic()
    held: list[tuple[Sample, label_fusion.Judgement]] = []
    numbered = list(enumerate(table.samples))
    for fold in range(FOLDS):
        inside = [row for row, one in numbered if one.fold != fold and one.whole]
        outside = [row for row, one in numbered if one.fold == fold and not one.example]
        if inside and outside:
            judged = _judged(table, inside, outside, given)
            held += zip((table.samples[row] for row in outside), judged, strict=True)
    report.seconds["cross-validation"] = time.monotonic() - began
    calibration = _calibrated(held)
    report.held_out = held_out_figures(held, calibration)
    began = time.monotonic()
    text = site_prior(fit_text(table, range(len(table.samples)), AXES), cases)
    report.seconds["fitting"] = time.monotonic() - began
    report.weak = weak_classes(cases)
    about: dict[str, Any] = {
        "name": NAME,
        "version": VERSION,
        "created": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "seed": seed,
        "data": labelled_cases.digest(cases),
        "cases": len(cases),
        "kinds": report.kinds,
        "entries": len(entries.entries),
        "held_out": report.held_out,
        "weak": report.weak,
        "made_with": {
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
        },
    }
    return Model(text=text, calibration=calibration, retry_given=given, about=about), report


def _calibrated(held: Sequence[tuple[Sample, label_fusion.Judgement]]) -> Calibration:
    composed = any(sample.case.provenance.get("origin") == "composed" for sample, _ in held)
    right = [one.side in sample.case.labels.allowed["side"] for sample, one in held]
    known = [
        place
        for place, (sample, _) in enumerate(held)
        if sample.case.labels.best["side"] is not None
        and (not composed or sample.case.provenance.get("origin") != "captured")
    ]
    # A lab's programs fail plainly; what operators see is less plain, as compositions are: the curve is theirs.
    if len({right[place] for place in known}) < 2:  # noqa: PLR2004 - nothing to learn from
        return Calibration((1.0, *(0.0,) * (len(label_fusion.SIGNALS) - 1)), 0.0, 0.5)
    return calibrate(
        [held[place][1].signals for place in known],
        [right[place] for place in known],
        [held[place][0].weight_for("side") for place in known],
    )


def held_out_figures(
    held: Sequence[tuple[Sample, label_fusion.Judgement]], calibration: Calibration
) -> dict[str, float]:
    """Shares right on kinds that were held out, each kind counted once."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample, one in held:
        allowed = sample.case.labels.allowed
        got = {
            "side": one.side, "cause": one.causes[0][0], "retry": one.retry,
        }  # fmt: skip
        for axis, label in got.items():
            if sample.case.labels.best[axis] is not None:
                sums[axis][0] += sample.weight_for(axis) * (label in allowed[axis])
                sums[axis][1] += sample.weight_for(axis)
        weight, sure = sample.weight_for("side"), calibration.confidence(one.signals)
        sums["answered"][0] += weight * (sure >= calibration.threshold)
        sums["answered"][1] += weight
    return {axis: round(right / total, 4) for axis, (right, total) in sums.items() if total}


def weak_classes(cases: Iterable[LabelledCase]) -> dict[str, dict[str, int]]:
    """Of each axis the classes with fewer than ten training cases."""
    axes = taxonomy.load()
    codes = {"side": axes.sides, "cause": axes.causes, "category": axes.categories, "symptom": axes.symptoms}
    counts: dict[str, Counter[str]] = {axis: Counter() for axis in codes}
    for case in cases:
        for axis in codes:
            label = case.labels.best[axis]
            if label is not None:
                counts[axis][label] += 1
    return {
        axis: {code: counts[axis][code] for code in listed if counts[axis][code] < WEAK_CLASS}
        for axis, listed in codes.items()
    }
