"""Fits, calibrates and packs a model from labelled cases and the catalogue's own examples. Reproducible: seed and data.

Each case is learned from in several windows (`classifiers.windows`). Each window stands twice: as it is, and without the
catalogue's features, so that the words are learned too where no entry knows a line. An entry's example lines are one-line
cases of their own. A case weighs `weight` / (cases of its kind)^0.5, so that no program speaks loudest; where experts
could defend several labels the best one gets 3/4, the others share the rest.

An operator's own cases (`--add`) count `OPERATOR_WEIGHT` times a packaged one of the same kind size; their labels also
move P(retry | cause) and, by the intercepts, the prior of a site: 20 own cases of a cause weigh as much as the corpus.
"""

import platform
import time
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import scipy
import sklearn
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from classifiers import dataset, judge, signatures, taxonomy
from classifiers.artifact import Model
from classifiers.case import JobFacts, LogStream, RawCase
from classifiers.dataset import AXES, LabelledCase, Labels
from classifiers.evidence import Extractor
from classifiers.features import features, is_distributed
from classifiers.items import Extracted
from classifiers.judge import Calibration
from classifiers.scan import Scanner
from classifiers.signatures import Catalogue
from classifiers.text import Head, TextModel
from classifiers.windows import cut

NAME: Final = "faultline-text"
VERSION: Final = "1"
OPERATOR_WEIGHT: Final = 3.0
WEAK_CLASS: Final = 10
_FOLDS: Final = 5
FOLD_ITERATIONS: Final = 12
_LEAST_SEEN: Final = 2
_LEAST_SEEN_PAIR: Final = 2
_CUT_CASES: Final = 3
_SHRINK: Final[Mapping[str, float]] = {"side": 1.0, "cause": 1.5, "category": 2.0, "symptom": 1.5, "retry": 1.0}
_BLIND_WEIGHT: Final = 0.6
_SPEAKING: Final = frozenset({"category", "symptom"})
_BLIND_WINDOWS: Final = frozenset({"whole", "first error alone"})
CALIBRATED_AXES: Final = ("side", "cause", "retry")
_ANSWER_RIGHT: Final = 0.965
_MOST_ABSTAINED: Final = 0.08


@dataclass(slots=True)
class Sample:
    """One window of a case as the classifier sees it."""

    case: LabelledCase
    extracted: Extracted
    row: dict[str, float]
    weight: float
    fold: int
    window: str = "whole"
    example: bool = False


@dataclass(slots=True)
class Report:
    """What training has to tell: figures by name, classes with few cases, seconds by step."""

    cases: int = 0
    samples: int = 0
    kinds: int = 0
    weak: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    held_out: dict[str, float] = field(default_factory=dict)


def example_cases(catalogue: Catalogue) -> list[LabelledCase]:
    """The catalogue's examples as one-line cases: of entries that begin a failure in full, of others with less weight."""
    axes = taxonomy.load()
    out = []
    for entry in catalogue.entries:
        if not entry.causes or entry.role in {"context", "teardown"}:
            continue
        best: dict[str, str | None] = {}
        allowed: dict[str, tuple[str, ...]] = {}
        for axis, weights in (("cause", entry.causes), ("category", entry.categories), ("symptom", entry.symptoms)):
            ranked = sorted(weights, key=lambda code: (-weights[code], code))  # noqa: B023 - used at once
            best[axis] = ranked[0] if ranked else None
            allowed[axis] = tuple(code for code in ranked if weights[code] > 0.15)  # noqa: PLR2004 - a real alternative
        best["side"] = axes.side_of(str(best["cause"]))
        allowed["side"] = tuple(dict.fromkeys(axes.side_of(code) for code in allowed["cause"]))
        best["retry"] = entry.retry
        allowed["retry"] = (entry.retry,) if entry.retry else ()
        weight = {"decisive": 1.0, "strong": 0.8, "weak": 0.3}[entry.strength] * (
            1.0 if entry.role == "initiating" else 0.4
        )
        when = entry.when
        job = JobFacts(
            status=min(when.status) if when and when.status else "failed",
            exit_code=min(when.exit_code) if when and when.exit_code else None,
            signal=min(when.signal) if when and when.signal else None,
            scheduler=min(when.scheduler) if when and when.scheduler else None,
        )
        for number, line in enumerate(entry.examples):
            if line.startswith(("status=", "reason=", "message=")):
                continue
            out.append(
                LabelledCase(
                    id=f"entry:{entry.id}:{number}",
                    group=f"entry:{entry.id}",
                    kind=f"entry:{entry.id}",
                    raw=RawCase(job=job, streams=(LogStream(text=line),)),
                    labels=Labels(best=best, allowed=allowed, root_line=line),
                    provenance={"origin": "composed", "source": entry.source},
                    weight=weight,
                )
            )
    return out


def extractor_of(catalogue: Catalogue) -> Extractor:
    """The extractor over a catalogue."""
    return Extractor(Scanner(catalogue))


def fold_of(kind: str, seed: int) -> int:
    """Which fold a kind is in: all its cases are in the same."""
    return zlib.crc32(f"{seed}:{kind}".encode()) % _FOLDS


def samples(cases: Iterable[LabelledCase], extractor: Extractor, seed: int) -> list[Sample]:
    """All windows of all cases, with their weights."""
    listed = list(cases)
    per_kind = Counter(case.kind for case in listed)
    out: list[Sample] = []
    met: Counter[str] = Counter()
    for case in listed:
        windows = list(cut(case))
        met[case.kind] += 1
        if met[case.kind] > _CUT_CASES:  # more runs of a kind add little: one window each, in turn
            windows = [windows[met[case.kind] % len(windows)]]
        origin = OPERATOR_WEIGHT if case.provenance.get("origin") == "operator" else 1.0
        total = case.weight * origin / per_kind[case.kind] ** 0.5
        mass = sum(one.weight for one in windows) ** 0.5
        for one in windows:
            extracted = extractor.extract(one.raw)
            out.append(
                Sample(
                    case=case,
                    extracted=extracted,
                    row=features(extracted),
                    weight=total * one.weight / mass,
                    fold=fold_of(case.kind, seed),
                    window=one.name,
                    example=case.id.startswith("entry:"),
                )
            )
    return out


def _blind(row: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if not name.startswith(("s:", "sc:", "sk:", "sy:", "sr:"))}


def _vocabulary(rows: Sequence[Mapping[str, float]], owners: Sequence[str]) -> dict[str, int]:
    """Features that at least two cases (or one catalogue entry) have, in order of name."""
    seen: dict[str, set[str]] = defaultdict(set)
    for row, owner in zip(rows, owners, strict=True):
        for name in row:
            found = seen[name]
            if len(found) < _LEAST_SEEN_PAIR:
                found.add(owner)
    kept = sorted(
        name
        for name, found in seen.items()
        if len(found) >= (_LEAST_SEEN_PAIR if " " in name else _LEAST_SEEN)
        or name.startswith(("s:", "sc:", "sk:", "sy:", "sr:"))
    )
    return {name: column for column, name in enumerate(kept)}


def _matrix(rows: Sequence[Mapping[str, float]], columns: Mapping[str, int]) -> Any:
    pointers, indices, data = [0], [], []
    for row in rows:
        for name, value in row.items():
            column = columns.get(name)
            if column is not None:
                indices.append(column)
                data.append(value)
        pointers.append(len(indices))
    return csr_matrix(
        (np.asarray(data, dtype=np.float32), np.asarray(indices, dtype=np.int32), np.asarray(pointers)),
        shape=(len(rows), len(columns)),
    )


def _targets(chosen: Sequence[Sample], axis: str) -> tuple[list[int], list[str], list[float]]:
    """Row numbers, labels and weights of an axis; ambiguous cases stand once a label."""
    rows, labels, weights = [], [], []
    for number, sample in enumerate(chosen):
        best = sample.case.labels.best[axis]
        if best is None or (axis == "symptom" and best == dataset.NONE and _may_be_single(sample)):
            continue
        others = [one for one in sample.case.labels.allowed[axis] if one != best]
        if axis in _SPEAKING and best == dataset.NONE and others:
            best, *others = others  # where a label could be defended it says more than silence
        rows.append(number)
        labels.append(best)
        weights.append(sample.weight * (0.75 if others else 1.0))
        for other in others:
            rows.append(number)
            labels.append(other)
            weights.append(sample.weight * 0.25 / len(others))
    if axis == "symptom":
        _lean(labels, weights)
    return rows, labels, weights


def _lean(labels: Sequence[str], weights: list[float]) -> None:
    """Moves the classes' weights half way (geometrically) to the published shares of the symptoms (TOSEM 2023)."""
    shares = {code: entry.share or 1.0 for code, entry in taxonomy.load().symptoms.items()}
    mass: dict[str, float] = defaultdict(float)
    for label, weight in zip(labels, weights, strict=True):
        mass[label] += weight
    total, whole = sum(mass.values()), sum(shares.values())
    for place, label in enumerate(labels):
        if label in shares:
            weights[place] *= ((shares[label] / whole) / (mass[label] / total)) ** 0.5


def _may_be_single(sample: Sample) -> bool:
    """Whether the case has no symptom only because it had one process: it teaches nothing of symptoms."""
    return sample.case.labels.best["category"] not in {None, dataset.NONE} or not is_distributed(sample.extracted)


def _fit_head(axis: str, seeing: Any, blind: Any, chosen: Sequence[Sample], iterations: int) -> tuple[Head, Any, Any]:
    picked, labels, weights = _targets(chosen, axis)
    again = [place for place, number in enumerate(picked) if chosen[number].window in _BLIND_WINDOWS]
    stacked = scipy.sparse.vstack([seeing[picked], blind[[picked[place] for place in again]]]).tocsr()
    mean = len(weights) / sum(weights)
    doubled = [weight * mean for weight in weights] + [weights[place] * mean * _BLIND_WEIGHT for place in again]
    model = LogisticRegression(C=_SHRINK[axis], solver="saga", max_iter=iterations, tol=1e-3, random_state=0)
    model.fit(
        stacked, [*labels, *(labels[place] for place in again)], sample_weight=np.asarray(doubled, dtype=np.float32)
    )
    classes = tuple(str(one) for one in model.classes_)
    coefficients, intercept = model.coef_, model.intercept_
    if len(classes) == 2:  # noqa: PLR2004 - two classes come as one row
        coefficients, intercept = np.vstack([-coefficients, coefficients]), np.concatenate([-intercept, intercept])
    return Head(axis, classes, 0), coefficients.T, intercept


def fit_text(chosen: Sequence[Sample], axes: Sequence[str], *, iterations: int = 30) -> TextModel:
    """The linear heads of some axes over the samples, each also without its catalogue features; two heads at a time."""
    rows = [sample.row for sample in chosen]
    columns = _vocabulary(rows, [sample.case.id for sample in chosen])
    seeing = _matrix(rows, columns)
    blind = _matrix([_blind(row) for row in rows], columns)
    with warnings.catch_warnings(), ThreadPoolExecutor(max_workers=2) as pool:
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many rounds are enough: more would follow single cases
        fitted = list(pool.map(lambda axis: _fit_head(axis, seeing, blind, chosen, iterations), axes))
    heads, begin = [], 0
    for head, _, _ in fitted:
        heads.append(Head(head.axis, head.classes, begin))
        begin += len(head.classes)
    weights = np.hstack([part for _, part, _ in fitted]).astype(np.float32)
    intercept = np.concatenate([one for _, _, one in fitted]).astype(np.float32)
    return TextModel(tuple(columns), tuple(heads), weights, intercept)


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
    text: TextModel, chosen: Sequence[Sample], given: Mapping[str, Mapping[str, float]]
) -> list[judge.Judgement]:
    matrix, known = text.matrix([sample.row for sample in chosen])
    probabilities = text.probabilities(matrix)
    judging = judge.Judge(text, given)
    return [
        judging.judge(sample.extracted, {axis: values[n] for axis, values in probabilities.items()}, float(known[n]))
        for n, sample in enumerate(chosen)
    ]


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
    extractor = extractor_of(entries)
    everything = samples([*cases, *example_cases(entries)], extractor, seed)
    report.samples = len(everything)
    report.seconds["reading"] = time.monotonic() - began
    tell(f"{len(cases)} cases of {report.kinds} kinds, {len(everything)} samples")
    given = retry_given(cases)
    began = time.monotonic()
    held: list[tuple[Sample, judge.Judgement]] = []
    for fold in range(_FOLDS):
        inside = [one for one in everything if one.fold != fold]
        outside = [one for one in everything if one.fold == fold and not one.example]
        if outside:
            text = fit_text(inside, CALIBRATED_AXES, iterations=FOLD_ITERATIONS)
            held += zip(outside, _judged(text, outside, given), strict=True)
    report.seconds["cross-validation"] = time.monotonic() - began
    calibration = _calibrated(held)
    report.held_out = held_out_figures(held, calibration)
    began = time.monotonic()
    text = fit_text(everything, AXES)
    report.seconds["fitting"] = time.monotonic() - began
    report.weak = weak_classes(cases)
    about: dict[str, Any] = {
        "name": NAME,
        "version": VERSION,
        "created": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "seed": seed,
        "data": dataset.digest(cases),
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


def _calibrated(held: Sequence[tuple[Sample, judge.Judgement]]) -> Calibration:
    composed = any(sample.case.provenance.get("origin") == "composed" for sample, _ in held)
    right = [one.side == sample.case.labels.best["side"] for sample, one in held]
    known = [
        place
        for place, (sample, _) in enumerate(held)
        if sample.case.labels.best["side"] is not None
        and (not composed or sample.case.provenance.get("origin") != "captured")
    ]
    # A lab's programs fail plainly; what operators see is less plain, as compositions are: the curve is theirs.
    if len({right[place] for place in known}) < 2:  # noqa: PLR2004 - nothing to learn from
        return Calibration((1.0, *(0.0,) * (len(judge.SIGNALS) - 1)), 0.0, 0.5)
    return calibrate(
        [held[place][1].signals for place in known],
        [right[place] for place in known],
        [held[place][0].weight for place in known],
    )


def held_out_figures(held: Sequence[tuple[Sample, judge.Judgement]], calibration: Calibration) -> dict[str, float]:
    """Shares right on kinds that were held out, each kind counted once."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample, one in held:
        allowed = sample.case.labels.allowed
        got = {
            "side": one.side, "cause": one.causes[0][0], "retry": one.retry,
        }  # fmt: skip
        for axis, label in got.items():
            if sample.case.labels.best[axis] is not None:
                sums[axis][0] += sample.weight * (label in allowed[axis])
                sums[axis][1] += sample.weight
        sums["answered"][0] += sample.weight * (calibration.confidence(one.signals) >= calibration.threshold)
        sums["answered"][1] += sample.weight
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
