"""Applies a site layer to the packaged scores, before verdicts are composed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from classifiers import taxonomy
from classifiers.fingerprint import fingerprint
from classifiers.model.label_fusion import FusedLabels
from classifiers.model.linear_model import Floats
from classifiers.model.packaged_scores import PackagedClassifier, PackagedScores
from classifiers.model.site.layer import CORRECTED_AXES, SiteLayer
from classifiers.model.site.memory import PEOPLE_TO_OVERRULE, FailureKeys, MemoryEntry, allowed_labels, keys_of
from classifiers.model.site.similarity import open_entries

# From the most careful outlook of a retry to the least: a correction may only move a verdict to the left.
OUTLOOKS_BY_CARE: Final = ("futile", "after_repair", "helps_elsewhere", "helps")
# Held-out programs: cosine of two failures from which lines that they share recognise the one as the other, where the
# packaged verdict is another one and confident.
LEAST_LIKENESS: Final = 0.75
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
            if entry is not None and not self._may_overrule(entry, keys, found, scores.rows[number]):
                entry = None
            remembered = None if entry is None else self._remembered(entry, found)
            if remembered is not None:
                certain = max(self._site.memory_confidence, threshold)
                same = remembered.side == found.side
                labels[number] = remembered
                confidences[number] = max(certain, self._confidence(found)) if same else certain
        return labels, confidences

    def corrected(self, scores: PackagedScores) -> tuple[list[FusedLabels], list[float]]:
        """The labels and confidences of each case without the memory.

        A verdict whose side the corrections do not change keeps its packaged confidence, recalibrated on audited
        failures. A changed one has the share of right sides among changed verdicts, or where no random sample tells it,
        the corrected probability of its side.
        """
        labels, shares = self.before_calibration(scores)
        confidences = []
        for old, share in zip(scores.labels, shares, strict=True):
            if share is None:
                confidences.append(self._site.calibration.confidence(self._confidence(old)))
            else:
                known = self._site.changed_confidence
                confidences.append(share if known is None else known)
        return labels, confidences

    def before_calibration(self, scores: PackagedScores) -> tuple[list[FusedLabels], list[float | None]]:
        """The labels of each case by corrected scores, and of a changed side its corrected probability (else None)."""
        labels = list(scores.labels)
        sides: list[float | None] = [None] * len(labels)
        if not self._site.corrects:
            return labels, sides
        corrected, shares = self._supported(scores)
        rows = [row for row in range(len(labels)) if corrected["side"][row] or corrected["cause"][row]]
        if not rows:
            return labels, sides
        fused = {axis: one[rows] for axis, one in scores.fused.items()}
        for axis, changed in corrected.items():
            fused[axis] = np.where(changed[rows, np.newaxis], shares[axis][rows], fused[axis])
        made = self._packaged.fusion.labels_of(
            [scores.inputs[row] for row in rows],
            {axis: one[rows] for axis, one in scores.text.items()},
            fused,
            [scores.known[row] for row in rows],
        )
        columns = {code: column for column, code in enumerate(self._packaged.fusion.classes["side"])}
        for row, new in zip(rows, made, strict=True):
            if new.side != labels[row].side:
                sides[row] = float(shares["side"][row, columns[new.side]])
            labels[row] = self._careful(new, labels[row])
        return labels, sides

    def _supported(self, scores: PackagedScores) -> tuple[dict[str, NDArray[np.bool_]], dict[str, Floats]]:
        """By axis whether corrected probabilities count for a case, and the corrected probabilities."""
        classes = self._packaged.fusion.classes
        entries = [open_entries(one, self._packaged.catalogue) for one in scores.inputs]
        similar = self._site.similar.of(scores.rows, entries)
        found = {
            axis: self._site.corrected(axis, classes[axis], np.asarray(scores.fused[axis]), similar)
            for axis in CORRECTED_AXES
        }
        shares = {axis: one for axis, (one, _) in found.items()}
        counted = {axis: one for axis, (_, one) in found.items()}
        # A cause follows its side: a changed side brings its causes along, and another side's cause does not count.
        sides = [self._side_of(classes["cause"][column]) for column in shares["cause"].argmax(axis=1)]
        kept = np.array([side == one.side for side, one in zip(sides, scores.labels, strict=True)])
        counted["cause"] = counted["side"] | (counted["cause"] & kept)
        return counted, shares

    def _careful(self, new: FusedLabels, old: FusedLabels) -> FusedLabels:
        """Corrected labels whose retry outlook is at least as careful as the packaged one and that of the new cause."""
        outlooks = [new.retry, old.retry]
        cause = new.causes[0][0]
        if cause != old.causes[0][0]:
            shares = self._packaged.model.retry_by_cause.get(cause, {})
            outlooks += [max(shares, key=lambda code: shares[code])] if shares else []
        return replace(new, retry=min(outlooks, key=OUTLOOKS_BY_CARE.index))

    def _may_overrule(
        self, entry: MemoryEntry, keys: FailureKeys, found: FusedLabels, row: Mapping[str, float]
    ) -> bool:
        """Whether a group may decide a failure.

        One that is recognised by its lines alone, with another fingerprint, changes the side of a confident verdict
        only if the failure as a whole is like the labelled one, or if a second person gave the label.
        """
        if keys.fingerprint in entry.fingerprints or entry.people >= PEOPLE_TO_OVERRULE:
            return True
        if entry.labels.get("side") in {None, found.side}:
            return True
        if self._confidence(found) < self._packaged.model.calibration.threshold:
            return True
        likeness = self._site.likeness(entry, row)
        # Of the older ones of very many groups no features are stored: how alike the failures are is not known.
        return likeness is not None and likeness >= LEAST_LIKENESS

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
        causes = ((cause, 1.0), *(ranked for ranked in found.causes if ranked[0] != cause))[:_TOP]
        symptoms = found.symptoms
        if "symptom" in given:
            symptoms = ((given["symptom"], 1.0), *(symptom for symptom in symptoms if symptom[0] != given["symptom"]))
        made = replace(
            found, side=side, causes=causes, category=given.get("category", found.category), symptoms=symptoms
        )
        return replace(made, retry=given["retry"]) if "retry" in given else self._careful(made, found)

    def _confidence(self, labels: FusedLabels) -> float:
        return self._packaged.model.calibration.confidence(labels.confidence_features)
