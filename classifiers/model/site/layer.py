"""The site layer: what a site's labels change in the verdicts of the packaged model, which stays as it is.

The layer holds three parts, each of which does nothing where it rests on no label:

- corrections: side and cause scores of failures that resemble labelled ones (`similarity`), a kernel logistic
  regression with the packaged scores as offset (fitted by `fitting`); a verdict changes only where the labels support
  the change
- memory: a recurrence of a labelled failure takes the label of its group (`memory`)
- calibration: a straight line over the log odds of the confidence, fitted on audited failures only

The file is JSON with sorted keys. Its id is a digest of its content.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from classifiers.model.linear_model import Doubles, Floats, softmax
from classifiers.model.site.memory import Memory, MemoryEntry
from classifiers.model.site.similarity import FEATURES_ALONE, KernelWeights, Similarities

FORMAT: Final = "faultline-site/1"
CORRECTED_AXES: Final = ("side", "cause")
# Judgement: share of an even distribution that is mixed into the packaged scores before they are corrected, so that a
# confident mistake can be corrected by a few labels. Confidence keeps the packaged scores.
SMOOTHING: Final = 0.02
# Held-out programs: what a change of the likeliest class needs, see `supported_changes`.
LEAST_LEAD: Final = 0.5
LEAST_SIMILARITY: Final = 0.05
_LOG_ODDS_LIMIT: Final = 12.0


class SiteLayerError(ValueError):
    """A site layer is foreign or altered; the text says what was expected."""


@dataclass(frozen=True, slots=True)
class SupportCase:
    """A labelled failure that corrections rest on.

    Attributes:
        case: the id of the labelled case.
        features: its features, scaled to length one.
        weights: by axis and class, how far the failure moves the scores of failures like it; empty without corrections.
        entries: the catalogue entries of its first line that leave several sides open, the labelled one among them.
    """

    case: str
    features: Mapping[str, float]
    weights: Mapping[str, Mapping[str, float]]
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SiteCalibration:
    """Confidence on audited failures: log odds × `slope` + `intercept`; `cases` audited failures support it."""

    slope: float = 1.0
    intercept: float = 0.0
    cases: int = 0

    def confidence(self, packaged: float) -> float:
        """The recalibrated confidence; unchanged without audited failures."""
        if not self.cases:
            return packaged
        return sigmoid(self.slope * log_odds(packaged) + self.intercept)


@dataclass(frozen=True)
class SiteLayer:
    """What a site has learned from its labels.

    Attributes:
        support: labelled failures with their weights, each with the features that other failures are compared with.
        memory: labelled groups.
        memory_confidence: confidence of a verdict that takes the label of a group.
        calibration: the confidence of other verdicts.
        about: what the layer rests on: labels, labellers, data digest, base model, parents, fitted constants.
        changed_confidence: confidence of a verdict whose side corrections change; None where no random sample of
            failures tells it.
        kernel: what entries and features count for the similarity of two failures.
    """

    support: tuple[SupportCase, ...] = ()
    memory: Memory = field(default_factory=Memory)
    memory_confidence: float = 0.0
    calibration: SiteCalibration = SiteCalibration()
    about: Mapping[str, Any] = field(default_factory=dict)
    changed_confidence: float | None = None
    kernel: KernelWeights = FEATURES_ALONE
    _weights: dict[str, Doubles] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def similar(self) -> Similarities:
        """Similarity of failures to the support cases."""
        features, entries = [one.features for one in self.support], [one.entries for one in self.support]
        return Similarities(features, entries, self.kernel)

    @cached_property
    def _places(self) -> dict[str, int]:
        """By case the place of its support case."""
        return {one.case: place for place, one in enumerate(self.support)}

    @property
    def is_empty(self) -> bool:
        """Whether the layer rests on no label, so that it changes nothing."""
        return not self.support and not self.memory.entries and not self.calibration.cases

    @property
    def corrects(self) -> bool:
        """Whether the layer has corrections."""
        return any(weights for vector in self.support for weights in vector.weights.values())

    @property
    def id(self) -> str:
        """`site-` and twelve hexadecimal digits, a digest of the content."""
        return "site-" + hashlib.sha256(self.text().encode()).hexdigest()[:12]

    def corrected(
        self, axis: str, classes: Sequence[str], shares: Floats, similar: Doubles
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Corrected probabilities of an axis, and whether the labels support another class than the packaged one.

        Args:
            axis: side or cause.
            classes: the classes of the columns.
            shares: the packaged probabilities, samples × classes.
            similar: similarity of each sample to each support case, samples × support cases.
        """
        scores, weights = np.log(smoothed(shares)), self._weights_of(axis, classes)
        probabilities: Floats = softmax(scores + similar @ weights).astype(np.float32)
        return probabilities, supported_changes(scores, similar, weights)

    def _weights_of(self, axis: str, classes: Sequence[str]) -> Doubles:
        """The weights of the support cases, support cases × classes."""
        if axis not in self._weights:
            rows = [[vector.weights.get(axis, {}).get(code, 0.0) for code in classes] for vector in self.support]
            self._weights[axis] = np.array(rows).reshape(len(rows), len(classes))
        return self._weights[axis]

    def likeness(self, entry: MemoryEntry, row: Mapping[str, float]) -> float | None:
        """Cosine (0..1) of a failure's features and those of a remembered group; None where none of it are stored."""
        places = [self._places[one] for one in entry.cases if one in self._places]
        if not places:
            return None
        return float(self.similar.cosines([row])[0, places].max())

    def text(self) -> str:
        """The layer as JSON."""
        # Without use: it is in the layers of earlier versions, whose ids are digests of their texts.
        corrections: dict[str, Any] = {"bias": {}, "support": [_support_data(one) for one in self.support]}
        # What earlier versions do not have is left out where it says nothing, so that their layers keep their ids.
        if self.changed_confidence is not None:
            corrections["changed_confidence"] = round(self.changed_confidence, 4)
        if self.kernel != FEATURES_ALONE:
            corrections["kernel"] = asdict(self.kernel)
        body = {
            "format": FORMAT,
            "about": dict(self.about),
            "corrections": corrections,
            "memory": {
                "confidence": round(self.memory_confidence, 4),
                "entries": [_plain(asdict(entry)) for entry in self.memory.entries],
            },
            "calibration": _plain(asdict(self.calibration)),
        }
        return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str) -> SiteLayer:
    """A layer of its JSON text.

    Raises:
        SiteLayerError: it is not a layer of this format.
    """
    try:
        body = json.loads(text)
        if body["format"] != FORMAT:
            raise SiteLayerError(f"expected {FORMAT}, got {str(body['format'])[:40]}")
        entries = (
            MemoryEntry(
                tuple(entry["fingerprints"]),
                tuple(entry["lines"]),
                entry["labels"],
                int(entry["people"]),
                tuple(entry["cases"]),
            )
            for entry in body["memory"]["entries"]
        )
        if body["corrections"].get("bias"):
            raise SiteLayerError("expected no bias: no version of this program fits one")
        changed = body["corrections"].get("changed_confidence")
        layer = SiteLayer(
            support=tuple(
                SupportCase(one["case"], one["features"], one["weights"], tuple(one.get("entries", ())))
                for one in body["corrections"]["support"]
            ),
            memory=Memory(tuple(entries)),
            memory_confidence=float(body["memory"]["confidence"]),
            calibration=SiteCalibration(**body["calibration"]),
            about=body["about"],
            changed_confidence=None if changed is None else float(changed),
            kernel=KernelWeights(**body["corrections"].get("kernel", {})),
        )
        _check_values(layer)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, SiteLayerError):
            raise
        raise SiteLayerError(f"not a site layer ({type(error).__name__}: {str(error)[:100]})") from error
    return layer


def _check_values(layer: SiteLayer) -> None:
    """Check the values that are computed with, which otherwise fail at the first failure that is classified.

    Raises:
        SiteLayerError: one is no finite number or no name.
        AttributeError: a part has another form.
    """
    numbers: list[object] = [*asdict(layer.calibration).values(), *asdict(layer.kernel).values()]
    numbers += [layer.memory_confidence, layer.changed_confidence or 0.0]
    names: list[object] = []
    for one in layer.support:
        weights = [weight for classes in one.weights.values() for weight in classes.values()]
        numbers += [*one.features.values(), *weights]
        names += [one.case, *one.entries]
    for entry in layer.memory.entries:
        names += [*entry.fingerprints, *entry.lines, *entry.cases, *entry.labels.values()]
    if not all(isinstance(one, int | float) and math.isfinite(one) for one in numbers):
        raise SiteLayerError("expected finite numbers")
    if not all(isinstance(one, str) for one in names):
        raise SiteLayerError("expected names")
    layer.about.keys()


def supported_changes(scores: Doubles, similar: Doubles, weights: Doubles) -> NDArray[np.bool_]:
    """Whether the labels support that a correction changes the likeliest class of a sample, by sample.

    The new class has to lead the old one by `LEAST_LEAD` standard errors of the correction. The standard error is the
    root of the summed squares of what each label adds to the lead: it is large where few labels carry the correction.
    And the label that adds most has to be at least `LEAST_SIMILARITY` similar: else the change rests on words that
    nearly all failures have.

    Args:
        scores: packaged scores, samples × classes.
        similar: similarity of each sample to each support case, samples × support cases.
        weights: the weights of the support cases, support cases × classes.
    """
    if not len(weights):
        return np.zeros(len(scores), dtype=np.bool_)
    moved, rows = scores + similar @ weights, np.arange(len(scores))
    old, new = scores.argmax(axis=1), moved.argmax(axis=1)
    added = similar * (weights.T[new] - weights.T[old])
    lead = moved[rows, new] - moved[rows, old]
    near = similar[rows, added.argmax(axis=1)] >= LEAST_SIMILARITY
    supported: NDArray[np.bool_] = (new != old) & near & (lead >= LEAST_LEAD * np.sqrt((added**2).sum(axis=1)))
    return supported


def smoothed(shares: Floats) -> Doubles:
    """Probabilities with a share of an even distribution, in double precision."""
    mixed: Doubles = (1 - SMOOTHING) * shares.astype(np.float64) + SMOOTHING / shares.shape[1]
    return mixed


def log_odds(share: float) -> float:
    """Logarithm of the odds, limited."""
    if share <= 0.0:
        return -_LOG_ODDS_LIMIT
    if share >= 1.0:
        return _LOG_ODDS_LIMIT
    return max(-_LOG_ODDS_LIMIT, min(_LOG_ODDS_LIMIT, math.log(share / (1 - share))))


def sigmoid(score: float) -> float:
    """The share with these log odds."""
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


def _support_data(one: SupportCase) -> dict[str, Any]:
    """A support case as JSON data; entries are left out where there are none."""
    data: dict[str, Any] = _plain(asdict(one))
    if not one.entries:
        del data["entries"]
    return data


def _plain(value: Any) -> Any:
    """A value as JSON data, with numbers of five digits."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
