"""Joins what the catalogue says with what the trained classifier says, and says how sure the side is.

Rules first: a decisive entry on the line that began it outweighs the classifier; a strong one moves it; weak ones are
features only. Then the classifier. Then, where neither is sure enough, the verdict abstains and keeps its best guess.
The axes agree: the cause is the best one of the chosen side.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from classifiers import taxonomy
from classifiers.evidence import Extracted, Item
from classifiers.features import is_distributed
from classifiers.signatures import Signature
from classifiers.text import Floats, TextModel

NONE: Final = "none"
_PULL: Final[Mapping[str, float]] = {"decisive": 2.2, "strong": 1.1, "weak": 0.25}
_PLACE: Final = (1.0, 0.35, 0.2)
_FLOOR: Final = 0.01
_SIDE_OF: Final[dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve over `signals`: the chance that the side is right. Below `threshold` the verdict abstains."""

    weights: tuple[float, ...]
    intercept: float
    threshold: float

    def confidence(self, values: Sequence[float]) -> float:
        """Probability (0..1) that the side is right."""
        score = self.intercept + sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True, slots=True)
class Judgement:
    """The labels of one case with their probabilities, best first, and the signals that calibration reads."""

    side: str
    causes: tuple[tuple[str, float], ...]
    category: str
    symptoms: tuple[tuple[str, float], ...]
    retry: str
    signals: tuple[float, ...]
    ruled: str | None


def votes(items: Sequence[Item], axis: str) -> list[tuple[float, Mapping[str, float]]]:
    """What entries say of an axis: (pull, weights), those on the first lines most.

    What the scheduler said counts in full where it is decisive or where the log says nothing, else less: a time limit
    is also what a hang looks like from outside.
    """
    out: list[tuple[float, Mapping[str, float]]] = []
    own = [item for item in items if not item.scheduler]
    beginning = [item for item in own if item.role == "initiating"]
    leading = beginning or [item for item in own if item.hits]
    for place, item in enumerate(leading[: len(_PLACE)]):
        part = _PLACE[place] * (1.0 if beginning else 0.6)
        out += _pulls(item, axis, part)
    for item in items:
        if item.scheduler:
            for hit in item.hits:
                weights = _of(hit, axis)
                full = hit.strength == "decisive" or not any(one.hits for one in leading)
                if weights:
                    out.append((_PULL[hit.strength] * (1.0 if full else 0.4), weights))
    return out


def _pulls(item: Item, axis: str, part: float) -> list[tuple[float, Mapping[str, float]]]:
    return [(part * _PULL[hit.strength], weights) for hit in item.hits if (weights := _of(hit, axis))]


def _of(hit: Signature, axis: str) -> Mapping[str, float]:
    if axis == "cause":
        return hit.causes
    if axis == "category":
        return hit.categories
    if axis == "symptom":
        return hit.symptoms
    return {hit.retry: 1.0} if hit.retry is not None else {}


def _joined(text: Floats, classes: Sequence[str], votes: Sequence[tuple[float, Mapping[str, float]]]) -> Floats:
    """Class probabilities after the votes."""
    if not votes:
        return text
    scores = np.log(np.maximum(text, 1e-6))
    for pull, weights in votes:
        said = np.array([weights.get(one, 0.0) for one in classes], dtype=np.float32)
        if said.any():
            scores = scores + pull * np.log((said + _FLOOR) / (1 + _FLOOR * len(classes)))
    scores = np.exp(scores - scores.max())
    out: Floats = (scores / scores.sum()).astype(np.float32)
    return out


def _ranked(probabilities: Floats, classes: Sequence[str]) -> list[tuple[str, float]]:
    order = np.argsort(-probabilities)
    return [(classes[place], float(probabilities[place])) for place in order]


def _sides() -> dict[str, str]:
    if not _SIDE_OF:
        axes = taxonomy.load()
        _SIDE_OF.update({code: axes.side_of(code) for code in axes.causes})
    return _SIDE_OF


def judge(
    extracted: Extracted,
    model: TextModel,
    text: Mapping[str, Floats],
    known: float,
    retry_given: Mapping[str, Mapping[str, float]],
) -> Judgement:
    """The labels of one case. `text`: its row of class probabilities an axis; `known`: share of features known;
    `retry_given`: P(outlook | cause) from the corpus.
    """  # noqa: D205 - one sentence a name
    side_of = _sides()
    items = extracted.items
    classes = model.head("cause").classes
    cause_votes = votes(items, "cause")
    causes = _joined(text["cause"], classes, cause_votes)
    sides: dict[str, float] = dict.fromkeys(taxonomy.SIDES, 0.0)
    for code, probability in zip(classes, causes, strict=True):
        sides[side_of[code]] += float(probability)
    head = model.head("side")
    for place, side in enumerate(head.classes):
        sides[side] = sides[side] ** 0.7 * float(text["side"][place]) ** 0.3
    total = sum(sides.values()) or 1.0
    ordered = sorted(((value / total, side) for side, value in sides.items()), reverse=True)
    side = ordered[0][1]
    ranked = _ranked(causes, classes)
    ranked = [one for one in ranked if side_of[one[0]] == side][:1] + [
        one for one in ranked if one[0] != next(code for code, _ in ranked if side_of[code] == side)
    ]
    category_classes = model.head("category").classes
    category = _ranked(_joined(text["category"], category_classes, votes(items, "category")), category_classes)[0][0]
    symptom_classes = model.head("symptom").classes
    symptoms = _ranked(_joined(text["symptom"], symptom_classes, votes(items, "symptom")), symptom_classes)
    retry = _retry(text["retry"], model.head("retry").classes, items, ranked[:3], retry_given)
    pulls = [pull for pull, _ in cause_votes]
    ruled = next((hit.id for item in items[:1] for hit in item.hits if hit.strength == "decisive" and hit.causes), None)
    text_side = max(zip(text["side"], head.classes, strict=True))[1]
    best, second = ordered[0][0], ordered[1][0]
    signals = (
        math.log(max(best, 1e-4) / max(1 - best, 1e-4)),
        best - second,
        1.0 if text_side == side else 0.0,
        min(max(pulls, default=0.0), 2.2),
        1.0 if items and items[0].role == "initiating" else 0.0,
        known,
        1.0 if is_distributed(extracted) else 0.0,
    )
    return Judgement(
        side=side,
        causes=tuple(ranked[:3]),
        category=category,
        symptoms=tuple(symptoms[:3]),
        retry=retry,
        signals=signals,
        ruled=ruled,
    )


def _retry(
    text: Floats,
    classes: Sequence[str],
    items: Sequence[Item],
    causes: Sequence[tuple[str, float]],
    given: Mapping[str, Mapping[str, float]],
) -> str:
    prior = np.full(len(classes), 1e-3, dtype=np.float32)
    for code, probability in causes:
        for place, outlook in enumerate(classes):
            prior[place] += probability * given.get(code, {}).get(outlook, 0.0)
    mixed = np.sqrt(text * prior)
    joined = _joined((mixed / mixed.sum()).astype(np.float32), classes, votes(items, "retry"))
    return _ranked(joined, classes)[0][0]
