"""Plain predictors that a model must beat: the signature catalogue alone, and two constants."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from classifiers import taxonomy
from classifiers.contracts import RawCase
from classifiers.data.labelled_cases import AXES, NONE, LabelledCase
from classifiers.evaluation.metrics import Answer, has_certain_label
from classifiers.extraction.extractor import Extractor
from classifiers.extraction.scan import Scanner
from classifiers.model.fusion_input import fusion_input
from classifiers.model.vote_matrix import VOTE_WEIGHTS, labels_of
from classifiers.signatures import Catalogue

BUGGY_CODE: Final = "always buggy code"
_DEFAULTS: Final[Mapping[str, str]] = {"cause": "USER.1", "category": NONE, "symptom": NONE, "retry": "futile"}


def baselines(cases: Sequence[LabelledCase], catalogue: Catalogue) -> list[tuple[str, list[Answer]]]:
    """Names and answers of all of them."""
    return [
        ("signatures alone", signatures_only([case.raw for case in cases], catalogue)),
        (BUGGY_CODE, buggy_code(cases)),
        ("most frequent class", majority(cases)),
    ]


def buggy_code(cases: Sequence[LabelledCase]) -> list[Answer]:
    """Always "user side, buggy code, no category, no symptom"."""
    labels = {"side": "user", **_DEFAULTS}
    return [Answer(labels=labels, confidence=0.5)] * len(cases)


def majority(cases: Sequence[LabelledCase]) -> list[Answer]:
    """The most frequent label of each axis, always."""
    labels = {}
    for axis in AXES:
        counts = Counter(str(case.labels.best[axis]) for case in cases if has_certain_label(case, axis))
        labels[axis] = counts.most_common(1)[0][0] if counts else NONE
    shown = Answer(labels=labels, confidence=0.5)
    return [shown] * len(cases)


def signatures_only(raws: Sequence[RawCase], catalogue: Catalogue) -> list[Answer]:
    """The labels of the catalogue alone; "user, buggy code, none" where no entry matches."""
    axes = taxonomy.load()
    extractor = Extractor(Scanner(catalogue))
    entries = {entry.id: entry for entry in catalogue.entries}
    answers = []
    for raw in raws:
        votes = fusion_input(extractor.extract(raw)).votes
        labels: dict[str, str] = {}
        for axis, default in _DEFAULTS.items():
            scores: dict[str, float] = defaultdict(float)
            for vote in votes:
                for code, weight in labels_of(entries[vote.entry], axis).items():
                    scores[code] += VOTE_WEIGHTS[vote.group] * weight
            labels[axis] = max(scores, key=lambda code: scores[code]) if scores else default
        labels["side"] = axes.side_of(labels["cause"])
        answers.append(Answer(labels=labels, confidence=0.5))
    return answers
