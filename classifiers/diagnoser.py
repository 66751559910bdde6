"""From raw cases to verdicts: extract evidence, make features, classify a whole batch at once, judge each."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from classifiers import owner_summary, signatures
from classifiers.contracts import RawCase, Verdict
from classifiers.extraction.evidence_items import ExtractedCase
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.fingerprint import fingerprint
from classifiers.model import artifact
from classifiers.model.artifact import Model
from classifiers.model.label_fusion import NONE, Judge, Judgement
from classifiers.model.vectorizer import features
from classifiers.signatures import Catalogue

SHOWN = 12


@dataclass(frozen=True)
class Judged:
    """One case all the way: for evaluation and training, which look behind a verdict."""

    extracted: ExtractedCase
    judgement: Judgement
    weighed: tuple[tuple[str, float], ...]


def rules_version(catalogue: Catalogue) -> str:
    """Name and version of a catalogue; changes with its content."""
    total = hashlib.sha256()
    for entry in catalogue.entries:
        pattern = entry.pattern.pattern if entry.pattern else ""
        total.update(
            repr(
                (
                    entry.id,
                    entry.literals,
                    pattern,
                    entry.role,
                    entry.strength,
                    *(sorted(w.items()) for w in (entry.causes, entry.categories, entry.symptoms)),
                    entry.retry,
                )
            ).encode()
        )
    return f"signatures {len(catalogue.entries)}-{total.hexdigest()[:8]}"


class Diagnoser:
    """Says why jobs failed. Holds a model and the catalogue; `model` and `rules` are name and version of each."""

    def __init__(self, model: Model, catalogue: Catalogue) -> None:
        self._model = model
        self._extractor = Extractor(Scanner(catalogue))
        self._judge = Judge(model.text, model.retry_given)
        self.model = model.label
        self.rules = rules_version(catalogue)

    @classmethod
    def load(cls, model_dir: Path) -> "Diagnoser":
        """With the model of a folder and the packaged catalogue.

        Raises:
            ModelError: the folder holds no model, or a foreign, truncated or altered one.
        """
        return cls(artifact.load(model_dir), signatures.packaged())

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict a case, in order. Texts are taken as redacted already."""
        return [self._verdict(one) for one in self.judged(cases)]

    def judged(self, cases: Sequence[RawCase]) -> list[Judged]:
        """Extraction, features and judgement of each case, in order."""
        if not cases:
            return []
        extracted = [self._extractor.extract(case) for case in cases]
        rows = [features(one) for one in extracted]
        text = self._model.text
        matrix, known = text.matrix(rows)
        probabilities = text.probabilities(matrix)
        judgements = self._judge.judge_all(extracted, probabilities, known.tolist())
        weighed = text.speak_for(matrix, "cause", [one.causes[0][0] for one in judgements])
        return [Judged(*one) for one in zip(extracted, judgements, weighed, strict=True)]

    def _verdict(self, judged: Judged) -> Verdict:
        judgement, case = judged.judgement, judged.extracted.case
        confidence = self._model.calibration.confidence(judgement.signals)
        abstained = confidence < self._model.calibration.threshold
        cause = judgement.causes[0][0]
        category = None if judgement.category == NONE else judgement.category
        symptom = None if judgement.symptoms[0][0] == NONE else judgement.symptoms[0][0]
        weighed = judged.weighed
        if judgement.ruled is not None:
            weighed = ((f"rule:{judgement.ruled}", 9.0), *weighed[:5])
        return Verdict(
            side=judgement.side,  # type: ignore[arg-type] # one of the three by construction
            cause=cause,
            cause_top=tuple(code for code, _ in judgement.causes),
            category=category,
            symptom=symptom,
            symptom_top=tuple(code for code, _ in judgement.symptoms if code != NONE),
            platform_symptom=owner_summary.platform_symptom(case, cause, symptom),
            confidence=confidence,
            abstained=abstained,
            retry_outlook=judgement.retry,  # type: ignore[arg-type] # one of the four by construction
            fingerprint=fingerprint(judged.extracted, cause),
            explanation=owner_summary.explanation(case, cause, category, abstained=abstained),
            model=self.model,
            rules=self.rules,
            evidence=case.evidence[:SHOWN],
            suspect=case.suspect,
            missing=case.missing,
            progress=case.progress,
            weighed=weighed,
        )
