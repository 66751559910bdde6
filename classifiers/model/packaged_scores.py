"""The packaged model's part of a classification: evidence, features and fused scores of a batch of cases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from classifiers.contracts import RawCase
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model.artifact import Model
from classifiers.model.fusion_input import FusionInput, fusion_input
from classifiers.model.label_fusion import FusedLabels, LabelFusion
from classifiers.model.linear_model import Floats
from classifiers.model.vectorizer import features
from classifiers.signatures import Catalogue


@dataclass(frozen=True)
class PackagedScores:
    """Scores of a batch; every sequence and array has one row for each case, in order.

    Attributes:
        extracted: the evidence.
        rows: features by name.
        matrix: features that the model knows, samples × features.
        known: share of the features that the model knows.
        inputs: what label fusion reads.
        text: by axis the text model's probabilities, samples × classes.
        fused: by axis the fused probabilities, samples × classes.
        labels: the labels that follow.
    """

    extracted: Sequence[ExtractedCase]
    rows: Sequence[Mapping[str, float]]
    matrix: Any
    known: Sequence[float]
    inputs: Sequence[FusionInput]
    text: Mapping[str, Floats]
    fused: Mapping[str, Floats]
    labels: Sequence[FusedLabels]


class PackagedClassifier:
    """Scores cases by model and catalogue."""

    def __init__(self, model: Model, catalogue: Catalogue) -> None:
        self.model = model
        self.catalogue = catalogue
        self.extractor = Extractor(Scanner(catalogue), model.lines.log_odds)
        self.fusion = LabelFusion(
            model.text.classes, model.fusion, model.retry_by_cause, catalogue, model.category_threshold
        )

    def scores(self, cases: Sequence[RawCase]) -> PackagedScores:
        """The scores of a batch of at least one case. Texts must be redacted already."""
        extracted = self.extractor.extract_all(cases)
        rows = [features(case, self.model.lines) for case in extracted]
        inputs = [fusion_input(case) for case in extracted]
        return self._scores_of(extracted, rows, inputs)

    def labels_of(self, rows: Sequence[Mapping[str, float]], inputs: Sequence[FusionInput]) -> Sequence[FusedLabels]:
        """The labels of a batch of at least one case that was read before: of its features and fusion inputs."""
        return self._scores_of((), rows, inputs).labels

    def _scores_of(
        self,
        extracted: Sequence[ExtractedCase],
        rows: Sequence[Mapping[str, float]],
        inputs: Sequence[FusionInput],
    ) -> PackagedScores:
        """The scores of features and fusion inputs; the evidence is only passed on."""
        matrix, known = self.model.text.matrix(rows)
        text = self.model.text.probabilities(matrix)
        fused = self.fusion.probabilities(inputs, text)
        labels = self.fusion.labels_of(inputs, text, fused, known.tolist())
        return PackagedScores(extracted, rows, matrix, known.tolist(), inputs, text, fused, labels)
