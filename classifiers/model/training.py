"""Fits, calibrates and describes a model of labelled cases and the catalogue's own examples.

Reproducible: the same seed and data give the same model, whatever the order of the cases and the files they are in. An
operator's own cases (`faultline train --add`) have `constants.OPERATOR_WEIGHT` times the weight of packaged ones, and
their causes set the prior of the site.
"""

import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import sklearn

from classifiers import signatures, taxonomy
from classifiers.data import labelled_cases
from classifiers.data.labelled_cases import WEAK_CLASS, LabelledCase
from classifiers.model import beginnings, constants
from classifiers.model.artifact import Model
from classifiers.model.fitting import fit_text, rounded, with_site_prior
from classifiers.model.fusion_fitting import fit_second_stage, held_out_stage
from classifiers.model.packaged_scores import PackagedClassifier
from classifiers.model.training_table import SampledCases, table_for
from classifiers.signatures import Catalogue

NAME: Final = "faultline-text"
VERSION: Final = "2"
_OUTLOOKS: Final = ("helps", "helps_elsewhere", "after_repair", "futile")


@dataclass(slots=True)
class TrainingReport:
    """Figures of a training run: counts, classes with few cases, seconds by step, shares right on held-out kinds."""

    cases: int = 0
    samples: int = 0
    kinds: int = 0
    weak: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)


def train(
    cases: Sequence[LabelledCase],
    catalogue: Catalogue | None = None,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Model, TrainingReport]:
    """A model of the cases and the catalogue's examples, with a report.

    Args:
        cases: labelled cases.
        catalogue: the signature catalogue; None is the packaged one.
        seed: seed of the folds, of the solver and of what the second stage is fitted on.
        progress: receives a line of text at each step.
    """
    cases = labelled_cases.ordered(cases)
    entries = catalogue or signatures.packaged()
    report = TrainingReport(cases=len(cases), kinds=len({case.kind for case in cases}), weak=weak_classes(cases))
    with _timed(report, "reading"):
        table = table_for(cases, entries, seed)
    report.samples = len(table.samples)
    progress(f"{len(cases)} cases of {report.kinds} kinds, {len(table.samples)} samples, {len(table.names)} features")
    retry_by_cause = retry_shares(cases)
    with _timed(report, "fitting"), ThreadPoolExecutor(max_workers=1) as pool:
        # At the same time as the folds: the solver holds no lock, and the longest axis of one leaves no processor idle.
        whole = pool.submit(fit_text, table, range(len(table.samples)), constants.AXES, seed=seed)
        stage = held_out_stage(table, seed, progress)
        second = fit_second_stage(stage, retry_by_cause, entries, seed)
        text = with_site_prior(rounded(whole.result()), cases)
    report.held_out = second.figures
    about: dict[str, Any] = {
        "name": NAME,
        "version": VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
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
    numbers = (second.coefficients, second.calibration, second.category_threshold, retry_by_cause)
    model = Model(text, table.lines, *numbers, beginnings.BY_RULES, about)
    progress("first lines")
    with _timed(report, "first lines"):
        chosen = beginnings.fit(SampledCases(PackagedClassifier(model, entries), table), cases, model.lines)
    return replace(model, beginnings=chosen), report


def retry_shares(cases: Iterable[LabelledCase]) -> dict[str, dict[str, float]]:
    """P(retry outlook | cause), each kind counted once, smoothed by the shares of the cause's side."""
    axes = taxonomy.load()
    by_cause: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    by_side: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    cases = list(cases)
    kinds = Counter(case.kind for case in cases)
    for case in cases:
        cause, retry = case.labels.best["cause"], case.labels.best["retry"]
        if cause is not None and retry is not None:
            by_cause[cause][retry] += 1 / kinds[case.kind]
            by_side[axes.side_of(cause)][retry] += 1 / kinds[case.kind]
    shares = {}
    for code in axes.causes:
        side = by_side[axes.side_of(code)]
        total = sum(side.values()) + 1
        counts = {outlook: by_cause[code][outlook] + 2 * (side[outlook] + 0.25) / total for outlook in _OUTLOOKS}
        shares[code] = {one: count / sum(counts.values()) for one, count in counts.items()}
    return shares


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


@contextmanager
def _timed(report: TrainingReport, step: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    report.seconds[step] = time.monotonic() - began
