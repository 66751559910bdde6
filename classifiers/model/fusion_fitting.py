"""Fits the second stage and the calibration on samples whose kinds the first stage has not seen.

The first stage is fitted once for each fold of kinds, without that fold, and then reads the fold's samples. Every
number that the second stage is fitted on is therefore out of fold.

The coefficients are fitted on masked samples: the first stage reads them without the catalogue's features and without
half of their words. Training kinds are worded more alike than failures in operation are, and the first stage reads the
catalogue's features as well. On whole samples the votes would add nothing to it and get no weight, and a known line in
an unfamiliar text would not decide.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classifiers.data.labelled_cases import NONE
from classifiers.model import conditional_logit, constants
from classifiers.model.calibration import UNFITTED, Calibration, fit_calibration
from classifiers.model.conditional_logit import ConditionalLogit
from classifiers.model.fitting import fit_text
from classifiers.model.label_fusion import FEATURES_BEFORE_VOTES, FusedLabels, LabelFusion, number_of_coefficients
from classifiers.model.linear_model import Doubles, Floats
from classifiers.model.samples import Sample
from classifiers.model.training_table import TrainingTable, label_shares, without_features
from classifiers.model.vectorizer import WORD_PREFIXES
from classifiers.model.vote_matrix import VOTE_WEIGHTS
from classifiers.signatures import Catalogue


@dataclass(frozen=True)
class HeldOutStage:
    """What first stages say of samples whose kinds they have not seen.

    Attributes:
        samples: the samples.
        classes: by axis the classes.
        whole: by axis the probabilities of the samples as they are, samples × classes.
        masked: the same for masked samples.
        known_words: of each sample the share of its features that the first stage knows.
    """

    samples: Sequence[Sample]
    classes: Mapping[str, tuple[str, ...]]
    whole: Mapping[str, Floats]
    masked: Mapping[str, Floats]
    known_words: Sequence[float]


@dataclass(frozen=True)
class SecondStage:
    """The fitted second stage, and the held-out labels that it gives."""

    coefficients: dict[str, ConditionalLogit]
    calibration: Calibration
    category_threshold: float
    figures: dict[str, float]


def held_out_stage(table: TrainingTable, seed: int, progress: Callable[[str], None]) -> HeldOutStage:
    """First stages of all folds, and their probabilities for the fold that each has not seen. Examples are left out."""
    masked_matrix = _masked(table, seed)
    rows = table.rows(lambda sample: not sample.is_example)
    place = {row: number for number, row in enumerate(rows)}
    classes = {
        axis: tuple(sorted(set(table.targets(range(len(table.samples)), axis).labels))) for axis in constants.AXES
    }
    floor = constants.PROBABILITY_FLOOR
    whole = {axis: np.full((len(rows), len(codes)), floor, np.float32) for axis, codes in classes.items()}
    masked = {axis: one.copy() for axis, one in whole.items()}
    known = np.zeros(len(rows))
    for fold in range(constants.FOLDS):
        progress(f"cross-fitting: fold {fold + 1} of {constants.FOLDS}")
        inside = [row for row, sample in enumerate(table.samples) if sample.fold != fold and sample.is_whole]
        outside = [row for row in rows if table.samples[row].fold == fold]
        if not inside or not outside:
            continue
        text = fit_text(table, inside, constants.AXES, masked_copies=False, seed=seed)
        places = [place[row] for row in outside]
        for into, matrix in ((whole, table.matrix), (masked, masked_matrix)):
            for axis, shares in text.probabilities(matrix[outside]).items():
                columns = [classes[axis].index(code) for code in text.classes[axis]]
                into[axis][np.ix_(places, columns)] = np.maximum(shares, floor)
        seen = np.asarray(table.matrix[inside].getnnz(axis=0)) > 0
        known[places] = table.matrix[outside][:, seen].getnnz(axis=1)
    sizes = np.array([max(1, table.sizes[row]) for row in rows])
    return HeldOutStage([table.samples[row] for row in rows], classes, whole, masked, (known / sizes).tolist())


def fit_second_stage(
    stage: HeldOutStage, retry_by_cause: Mapping[str, Mapping[str, float]], catalogue: Catalogue, seed: int
) -> SecondStage:
    """Coefficients of all axes, one after the other, then the calibration on the labels that they give."""
    rng = np.random.default_rng(seed)
    taken = len(stage.samples)
    chosen = np.sort(rng.permutation(taken)[: constants.FUSION_SAMPLES])
    drawn = [stage.samples[row] for row in chosen]
    masked = {axis: shares[chosen] for axis, shares in stage.masked.items()}
    inputs = [sample.fusion for sample in drawn]
    coefficients = {
        axis: ConditionalLogit((1.0, *(0.0,) * (number_of_coefficients(axis) - 1))) for axis in FEATURES_BEFORE_VOTES
    }
    fused: dict[str, Floats] = {}
    for axis in FEATURES_BEFORE_VOTES:
        codes = stage.classes[axis]
        fusion = LabelFusion(stage.classes, coefficients, retry_by_cause, catalogue)
        features = fusion.features_before_votes(axis, masked, fused)
        if axis != "side":
            votes = fusion.votes.features(fusion.votes.indexed(inputs), axis)
            features = np.concatenate([features, votes], axis=2)
        targets, weights = _targets(drawn, axis, codes)
        used = np.flatnonzero(weights > 0)
        if axis == "retry":
            coefficients[axis] = retry_logit()
        elif len(used):
            coefficients[axis] = conditional_logit.fit(
                features[used], targets[used], weights[used], constants.FUSION_PENALTY
            )
        fused[axis] = coefficients[axis].predict_proba(features)
    all_inputs = [sample.fusion for sample in stage.samples]
    fusion = LabelFusion(stage.classes, coefficients, retry_by_cause, catalogue)
    whole = fusion.probabilities(all_inputs, stage.whole)
    sides = [stage.classes["side"][column] for column in whole["side"].argmax(axis=1)]
    shares = np.array([share for _, share in fusion.best_categories(whole["category"], sides)])
    threshold = fit_category_threshold(stage.samples, shares)
    fusion = LabelFusion(stage.classes, coefficients, retry_by_cause, catalogue, threshold)
    labels = fusion.labels_of(all_inputs, stage.whole, whole, stage.known_words)
    calibration = _calibration(stage.samples, labels)
    return SecondStage(coefficients, calibration, threshold, _figures(stage.samples, labels, calibration))


def retry_logit() -> ConditionalLogit:
    """The conditional logit of the retry outlook, of which the coefficients are not fitted."""
    return ConditionalLogit((*constants.RETRY_COEFFICIENTS, *VOTE_WEIGHTS))


def _masked(table: TrainingTable, seed: int) -> Any:
    """The samples without the catalogue's features and without half of their words, drawn by the seed."""
    matrix = without_features(table.matrix, table.from_catalogue)
    is_word = table.mask(lambda name: name.startswith(WORD_PREFIXES))
    dropped = np.random.default_rng(seed).random(matrix.nnz) < constants.MASKED_WORD_SHARE
    matrix.data[dropped & is_word[matrix.indices]] = 0
    return matrix


def _targets(taken: Sequence[Sample], axis: str, codes: Sequence[str]) -> tuple[Floats, Doubles]:
    """Shares of the labels of each sample, samples × classes, and its weight, 0 where it has no label."""
    places = {code: place for place, code in enumerate(codes)}
    targets = np.zeros((len(taken), len(codes)), np.float32)
    weights = np.zeros(len(taken))
    for row, sample in enumerate(taken):
        for label, share in label_shares(sample, axis):
            if label in places:
                targets[row, places[label]] = share
                weights[row] = sample.weight_for(axis)
    return targets, weights


def _calibration(taken: Sequence[Sample], labels: Sequence[FusedLabels]) -> Calibration:
    """The curve of composed and operators' cases: programs of the lab fail more plainly than what operators see."""
    composed = any(sample.case.provenance.get("origin") == "composed" for sample in taken)
    known = [
        (sample, one)
        for sample, one in zip(taken, labels, strict=True)
        if sample.case.labels.best["side"] is not None
        and (not composed or sample.case.provenance.get("origin") != "captured")
    ]
    if not known:
        return UNFITTED
    return fit_calibration(
        [one.confidence_features for _, one in known],
        [one.side in sample.case.labels.allowed["side"] for sample, one in known],
        [sample.weight_for("side") for sample, _ in known],
    )


def _figures(taken: Sequence[Sample], labels: Sequence[FusedLabels], calibration: Calibration) -> dict[str, float]:
    """Shares right on held-out kinds, by axis, and the share that is answered."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for sample, one in zip(taken, labels, strict=True):
        allowed = sample.case.labels.allowed
        found = {
            "side": one.side, "cause": one.causes[0][0], "category": one.category, "symptom": one.symptoms[0][0],
            "retry": one.retry,
        }  # fmt: skip
        for axis, label in found.items():
            if label_shares(sample, axis):
                sums[axis][0] += sample.weight_for(axis) * (label in allowed[axis])
                sums[axis][1] += sample.weight_for(axis)
        weight = sample.weight_for("side")
        sums["answered"][0] += weight * (calibration.confidence(one.confidence_features) >= calibration.threshold)
        sums["answered"][1] += weight
    return {axis: round(right / total, 4) for axis, (right, total) in sums.items() if total}


def fit_category_threshold(samples: Sequence[Sample], shares: NDArray[np.floating]) -> float:
    """The lowest threshold at which few failures without a category get one, within `CATEGORY_THRESHOLD_RANGE`.

    Logs of real programs, composed logs and reports by people are worded differently and have different shares of false
    reports. The threshold is the greatest that one of them needs, so that none is reported on more often than
    `CATEGORY_FALSE_REPORTS` allows.

    Args:
        samples: the held-out samples. Those to which a category may apply, and whose label is a guess, are left out.
        shares: of each sample the probability that a category applies, 0 where none can be reported; shape (samples,).
    """
    parts: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for sample, share in zip(samples, shares.tolist(), strict=True):
        if not sample.is_secondary("category") and label_shares(sample, "category") == [(NONE, 1.0)]:
            provenance = sample.case.provenance
            part = str(provenance.get("origin")), str(provenance.get("medium"))
            parts[part].append((share, sample.weight_for("category")))
    needed = [_needed(part) for part in parts.values() if len(part) >= constants.CATEGORY_PART_SAMPLES]
    if not needed:
        return constants.CATEGORY_THRESHOLD
    least, most = constants.CATEGORY_THRESHOLD_RANGE
    return round(min(most, max(least, *needed)), 4)


def _needed(part: Sequence[tuple[float, float]]) -> float:
    """The lowest threshold above which at most the allowed share of the weight lies."""
    rows = np.array(sorted(part, reverse=True))
    above = np.cumsum(rows[:, 1]) / rows[:, 1].sum()
    place = int(np.searchsorted(above, constants.CATEGORY_FALSE_REPORTS, side="right"))
    # The sample at `place` is the first that may not be reported: the threshold is the next number above its share.
    return float(np.nextafter(rows[min(place, len(rows) - 1), 0], 1.0))
