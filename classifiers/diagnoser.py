"""From raw cases to verdicts: extract evidence, compute features, classify a whole batch at once, fuse labels."""

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from classifiers import input_measures, owner_summary, signatures
from classifiers.contracts import Evidence, RawCase, Verdict
from classifiers.explanation.chain import chain_of
from classifiers.extraction.evidence_items import ExtractedCase, tell_only_the_end
from classifiers.extraction.observations.only_losses import UNKNOWN
from classifiers.fingerprint import fingerprint
from classifiers.model import artifact
from classifiers.model.artifact import Model
from classifiers.model.beginnings import Choice, with_beginning
from classifiers.model.calibration import with_agreement
from classifiers.model.label_fusion import NONE, FusedLabels
from classifiers.model.packaged_scores import PackagedClassifier, PackagedScores
from classifiers.model.site.layer import SiteLayer
from classifiers.model.site.verdicts import SiteClassifier
from classifiers.own_frame import own_frame
from classifiers.relevance import event_rules
from classifiers.signatures import Catalogue, LinePattern, When
from classifiers.suspected_place import suspect_of_job

# Lines of evidence in a verdict, and the weight that a decisive catalogue entry is shown with. Judgement.
SHOWN_EVIDENCE = 12
_RULE_WEIGHT = 9.0
_SHOWN_FEATURES_WITH_RULE = 5
_SHOWN_SYMPTOMS = 3


@dataclass(frozen=True)
class Diagnosis:
    """The steps to one verdict.

    Attributes:
        extracted: the evidence.
        labels: the labels, after the site layer.
        weighed: the features that support the cause most.
        confidence: probability (0..1) that the side is right.
        packaged_cause: the cause without the site layer. The fingerprint holds it, so that a group of failures keeps
            its fingerprint when its label changes.
        known: share (0..1) of the features that the model knows.
        beginning: what was chosen among what the failure may have begun with.
    """

    extracted: ExtractedCase
    labels: FusedLabels
    weighed: tuple[tuple[str, float], ...]
    confidence: float
    packaged_cause: str
    known: float
    beginning: Choice


def rules_version(catalogue: Catalogue) -> str:
    """Name and version of a catalogue with the rules of node events. It changes with the content of either."""
    total = hashlib.sha256(event_rules.source())
    for entry in catalogue.entries:
        total.update(repr([_content(getattr(entry, field.name)) for field in fields(entry)]).encode())
    return f"signatures {len(catalogue.entries)}-{total.hexdigest()[:8]}"


def _content(value: Any) -> Any:
    """The value of an entry's field in a form whose text is the same in every process."""
    if isinstance(value, LinePattern):
        return value.pattern
    if isinstance(value, When):
        return [sorted(getattr(value, field.name)) for field in fields(value)]
    return sorted(value.items()) if isinstance(value, Mapping) else value


def _shown(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The first lines of evidence, and the node events that were set aside."""
    used = [item for item in evidence if item.note is None]
    return (*used[:SHOWN_EVIDENCE], *(item for item in evidence if item.note is not None))


def _is_only_a_guess(labels: FusedLabels, extracted: ExtractedCase, case: RawCase) -> bool:
    """Whether a side is chosen for want of anything better.

    Either nothing is known but that the job ended, as without any log. Or a failure is put on the user's account
    although the logs show only that processes lost one another, or although nodes reported events and the catalogue's
    entries speak for other sides. Of the last ones, 6 of 20 were right in the runs that had been read by then
    (record 0057).
    """
    if tell_only_the_end(extracted.items):
        return True
    return labels.side == "user" and (extracted.only_losses or (labels.contradicted and bool(case.node_events)))


def _confidence(
    of_curve: float, beginning: Choice, labels: FusedLabels, extracted: ExtractedCase, case: RawCase
) -> float:
    """The confidence of a verdict whose labels are the packaged model's."""
    found = with_agreement(of_curve, beginning.agreement, labels.confidence_features[-1])
    return min(found, UNKNOWN) if _is_only_a_guess(labels, extracted, case) else found


class Diagnoser:
    """Classifies failures. Holds a model and the catalogue; `model` and `rules` are name and version of each.

    Args:
        model: the packaged model, or one trained here.
        catalogue: the signatures.
        site: what the site's labels change; None or an empty layer changes nothing.
    """

    def __init__(self, model: Model, catalogue: Catalogue, site: SiteLayer | None = None) -> None:
        self._model = model
        self._packaged = PackagedClassifier(model, catalogue)
        self.rules = rules_version(catalogue)
        self._use(site)

    def _use(self, site: SiteLayer | None) -> None:
        in_use = site is not None and not site.is_empty
        self._site = SiteClassifier(site, self._packaged) if site is not None and in_use else None
        self.model = f"{self._model.label} {site.id}" if site is not None and in_use else self._model.label

    def with_layer(self, site: SiteLayer | None) -> "Diagnoser":
        """The same with another site layer; both share what is built of model and catalogue."""
        other = copy(self)
        other._use(site)  # noqa: SLF001 - of the same class
        return other

    @classmethod
    def load(cls, model_dir: Path) -> "Diagnoser":
        """With the model of a folder and the packaged catalogue.

        Raises:
            ModelError: the folder holds no model, or a foreign, truncated or altered one.
        """
        return cls(artifact.load(model_dir), signatures.packaged())

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        """One verdict for each case, in order. Texts must be redacted already."""
        return self._verdicts(cases, self._packaged.scores(cases)) if cases else []

    def diagnose_as(self, other: "Diagnoser", cases: Sequence[RawCase]) -> tuple[list[Verdict], list[Verdict]]:
        """The verdicts of this one and of another site layer (see `with_layer`); logs are read once for both."""
        if not cases:
            return [], []
        assert self._packaged is other._packaged  # noqa: SLF001 - of the same class
        scores = self._packaged.scores(cases)
        return self._verdicts(cases, scores), other._verdicts(cases, scores)  # noqa: SLF001 - as above

    def explained(self, cases: Sequence[RawCase]) -> list[Diagnosis]:
        """The steps to the verdict of each case, in order."""
        return self._diagnoses(cases, self._packaged.scores(cases)) if cases else []

    def _verdicts(self, cases: Sequence[RawCase], scores: PackagedScores) -> list[Verdict]:
        found = []
        for case, diagnosis in zip(cases, self._diagnoses(cases, scores), strict=True):
            found.append(self._verdict(diagnosis, case))
        return found

    def _diagnoses(self, cases: Sequence[RawCase], scores: PackagedScores) -> list[Diagnosis]:
        causes = [chosen.causes[0][0] for chosen in scores.labels]
        if self._site is None:
            labels = list(scores.labels)
            confidences = [self._model.calibration.confidence(chosen.confidence_features) for chosen in labels]
        else:
            labels, confidences = self._site.labels(scores)
        choose = partial(self._model.beginnings.choice, lines=self._model.lines)
        beginnings = [
            choose(one, label) if case.node_events else Choice()
            for one, label, case in zip(scores.extracted, labels, cases, strict=True)
        ]
        confidences = [
            _confidence(confidence, beginning, label, one, case) if label is packaged else confidence
            for confidence, beginning, label, packaged, one, case in zip(
                confidences, beginnings, labels, scores.labels, scores.extracted, cases, strict=True
            )
        ]
        weighed = self._model.text.top_contributions(scores.matrix, "cause", [chosen.causes[0][0] for chosen in labels])
        parts = zip(scores.extracted, labels, weighed, confidences, causes, scores.known, beginnings, strict=True)
        return [Diagnosis(*part) for part in parts]

    def _verdict(self, diagnosis: Diagnosis, raw: RawCase) -> Verdict:
        labels = diagnosis.labels
        shown = with_beginning(diagnosis.extracted, diagnosis.beginning.leading, raw)
        case = shown.case
        confidence = diagnosis.confidence
        abstained = confidence < self._model.calibration.least_confidence(has_events=bool(raw.node_events))
        cause = labels.causes[0][0]
        category = None if labels.category == NONE else labels.category
        symptom = None if labels.symptoms[0][0] == NONE else labels.symptoms[0][0]
        weighed = diagnosis.weighed
        platform_symptom = owner_summary.platform_symptom(case, cause, symptom)
        suspect = suspect_of_job(case.suspect, case.job, platform_symptom)
        case = case if suspect is case.suspect else replace(case, suspect=suspect)
        evidence = _shown(case.evidence)
        if labels.deciding_entry is not None:
            weighed = ((f"rule:{labels.deciding_entry}", _RULE_WEIGHT), *weighed[:_SHOWN_FEATURES_WITH_RULE])
        return Verdict(
            side=labels.side,  # type: ignore[arg-type] # one of the three by construction
            cause=cause,
            cause_top=tuple(code for code, _ in labels.causes),
            category=category,
            symptom=symptom,
            symptom_top=tuple(code for code, _ in labels.symptoms if code != NONE)[:_SHOWN_SYMPTOMS],
            platform_symptom=platform_symptom,
            confidence=confidence,
            abstained=abstained,
            retry_outlook=labels.retry,  # type: ignore[arg-type] # one of the four by construction
            fingerprint=fingerprint(diagnosis.extracted, diagnosis.packaged_cause),
            explanation=owner_summary.explanation(case, cause, category, abstained=abstained),
            model=self.model,
            rules=self.rules,
            evidence=evidence,
            suspect=suspect,
            missing=case.missing,
            progress=case.progress,
            uncorroborated=case.uncorroborated,
            weighed=weighed,
            own_frame=own_frame(raw.streams, evidence),
            chain=chain_of(shown),
            measures=input_measures.measure(diagnosis.extracted, raw.streams, diagnosis.known),
        )
