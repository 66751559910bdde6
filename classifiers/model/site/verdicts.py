"""Applies a site layer to the packaged scores, before verdicts are composed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from classifiers import taxonomy
from classifiers.fingerprint import fingerprint
from classifiers.model.label_fusion import FusedLabels
from classifiers.model.linear_model import Floats
from classifiers.model.packaged_scores import PackagedClassifier, PackagedScores
from classifiers.model.site.layer import CORRECTED_AXES, SiteLayer, log_odds, sigmoid, smoothed
from classifiers.model.site.memory import MemoryEntry, allowed_labels, keys_of

# From the most careful outlook of a retry to the least: a correction may only move a verdict to the left.
OUTLOOKS_BY_CARE: Final = ("futile", "after_repair", "helps_elsewhere", "helps")
_TOP: Final = 3


class SiteClassifier:
    """The labels and confidences of failures with a site layer.

    Args:
        site: the layer.
        packaged: the classifier that made the scores.
    """

    def __init__(self, site: SiteLayer, packaged: PackagedClassifier) -> None:
        self._site = site
        self._packaged = packaged
        self._side_of = taxonomy.load().side_of

    def labels(self, scores: PackagedScores) -> tuple[list[FusedLabels], list[float]]:
        """The labels of each case, and the probability (0..1) that its side is right."""
        labels, confidences = self.corrected(scores)
        threshold = self._packaged.model.calibration.threshold
        for number, (found, extracted) in enumerate(zip(scores.labels, scores.extracted, strict=True)):
            keys = keys_of(extracted, fingerprint(extracted, found.causes[0][0]))
            entry = self._site.memory.recall(keys)
            remembered = None if entry is None else self._remembered(entry, found)
            if remembered is not None:
                certain = max(self._site.memory_confidence, threshold)
                same = remembered.side == found.side
                labels[number] = remembered
                confidences[number] = max(certain, self._confidence(found)) if same else certain
        return labels, confidences

    def corrected(self, scores: PackagedScores) -> tuple[list[FusedLabels], list[float]]:
        """The labels and recalibrated confidences of each case without the memory."""
        labels, confidences = self.before_calibration(scores)
        return labels, [self._site.calibration.confidence(one) for one in confidences]

    def before_calibration(self, scores: PackagedScores) -> tuple[list[FusedLabels], list[float]]:
        """The labels of each case by corrected scores, and the confidence that calibration reads."""
        if not self._site.support and not self._site.bias:
            return list(scores.labels), [self._confidence(one) for one in scores.labels]
        classes = self._packaged.fusion.classes
        similar = self._site.similarities(scores.rows)
        shares = {
            axis: self._site.corrected(axis, classes[axis], scores.fused[axis], similar) for axis in CORRECTED_AXES
        }
        made = self._packaged.fusion.labels_of(
            scores.inputs, scores.text, {**scores.fused, **shares}, list(scores.known)
        )
        sides = self._side_confidences(scores, made, shares["side"])
        labels = [self._careful(new, old) for new, old in zip(made, scores.labels, strict=True)]
        return labels, sides

    def _side_confidences(self, scores: PackagedScores, made: Sequence[FusedLabels], corrected: Floats) -> list[float]:
        """The packaged confidence, moved by as much as the correction moves the odds of the side.

        Where the correction chooses another side, the probability of that side.
        """
        columns = {code: column for column, code in enumerate(self._packaged.fusion.classes["side"])}
        before = smoothed(np.asarray(scores.fused["side"]))
        found = []
        for number, (new, old) in enumerate(zip(made, scores.labels, strict=True)):
            share = float(corrected[number, columns[new.side]])
            if new.side != old.side:
                found.append(share)
                continue
            moved = log_odds(share) - log_odds(float(before[number, columns[new.side]]))
            found.append(sigmoid(log_odds(self._confidence(old)) + moved))
        return found

    def _careful(self, new: FusedLabels, old: FusedLabels) -> FusedLabels:
        """Corrected labels whose retry outlook is at least as careful as the packaged one and that of the new cause."""
        outlooks = [new.retry, old.retry]
        cause = new.causes[0][0]
        if cause != old.causes[0][0]:
            shares = self._packaged.model.retry_by_cause.get(cause, {})
            outlooks += [max(shares, key=lambda code: shares[code])] if shares else []
        return replace(new, retry=min(outlooks, key=OUTLOOKS_BY_CARE.index))

    def _remembered(self, entry: MemoryEntry, found: FusedLabels) -> FusedLabels | None:
        """The labels of a group that a failure recurs from; None if the entry may not decide."""
        decisive = None
        if found.deciding_entry is not None:
            decisive = self._packaged.catalogue.by_id[found.deciding_entry].causes
        given = allowed_labels(entry, retry=found.retry, decisive_causes=decisive)
        if given is None:
            return None
        side = given.get("side", found.side)
        cause = given.get("cause")
        if cause is None:
            ranked = [code for code, _ in found.causes] + [*self._packaged.fusion.classes["cause"]]
            cause = next(code for code in ranked if self._side_of(code) == side)
        causes = ((cause, 1.0), *(one for one in found.causes if one[0] != cause))[:_TOP]
        symptoms = found.symptoms
        if "symptom" in given:
            symptoms = ((given["symptom"], 1.0), *(one for one in symptoms if one[0] != given["symptom"]))
        made = replace(
            found, side=side, causes=causes, category=given.get("category", found.category), symptoms=symptoms
        )
        return replace(made, retry=given["retry"]) if "retry" in given else self._careful(made, found)

    def _confidence(self, labels: FusedLabels) -> float:
        return self._packaged.model.calibration.confidence(labels.confidence_features)
