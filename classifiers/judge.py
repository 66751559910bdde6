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
from classifiers.features import is_distributed, is_single
from classifiers.items import Extracted, Item
from classifiers.signatures import Signature
from classifiers.text import Floats, TextModel

NONE: Final = "none"
_PULL: Final[Mapping[str, float]] = {"decisive": 1.8, "strong": 0.7, "weak": 0.15}
_PLACE: Final = (1.0, 0.35, 0.2)
# What the confidence curve reads of a judgement, in this order; a model trained for another list does not fit.
SIGNALS: Final = ("odds", "margin", "agreement", "pull", "beginning", "known", "several", "unsigned", "length")
_FLOOR: Final = 0.01
# A program's own failure nearly always has a category, the platform's seldom: what the heads of category and cause say
# are joined as two witnesses, neither ever surer than this, and a category is told from this share on.
_PROGRAM: Final = ("USER.1", "USER.3", "USER.4")
_WITNESS: Final = 0.05
_TOLD_CATEGORY: Final = 0.6
_NO_SYMPTOM: Final = 0.6
# Started again before a repair a job waits and fails once more: it is held back where nearly one in two would.
_REPAIR: Final = 0.45
_RETRY_VOTES: Final = 0.3
# An entry tells what failed, seldom at which stage: symptoms are left to the words (classifiers/COMPARISON.md).
_SYMPTOM_VOTES: Final = 0.6
_FUTILE: Final = 0.3


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


def votes(items: Sequence[Item], axis: str) -> list[tuple[float, Signature]]:
    """What entries say of an axis: (pull, entry), those on the first lines most.

    What the scheduler said counts in full where it is decisive or where the log says nothing, else less: a time limit
    is also what a hang looks like from outside.
    """
    out: list[tuple[float, Signature]] = []
    own = [item for item in items if not item.scheduler]
    beginning = [item for item in own if item.role == "initiating"]
    leading = beginning or [item for item in own if item.hits]
    for place, item in enumerate(leading[: len(_PLACE)]):
        out += [
            (_PLACE[place] * _PULL[hit.strength] * (1.0 if hit.role == "initiating" else 0.6), hit)
            for hit in item.hits
            if weights_of(hit, axis)
        ]
    log_speaks = any(one.hits for one in leading) or bool(beginning)
    for item in items:
        if item.scheduler:
            for hit in item.hits:
                if weights_of(hit, axis):
                    full = hit.strength == "decisive" or not log_speaks
                    out.append((_PULL[hit.strength] * (1.0 if full else 0.4), hit))
    return out


def weights_of(hit: Signature, axis: str) -> Mapping[str, float]:
    """What an entry says of an axis."""
    if axis == "cause":
        return hit.causes
    if axis == "category":
        return hit.categories
    if axis == "symptom":
        return hit.symptoms
    return {hit.retry: 1.0} if hit.retry is not None else {}


def _ranked(probabilities: Floats, classes: Sequence[str], most: int = 3) -> list[tuple[str, float]]:
    return sorted(zip(classes, probabilities.tolist(), strict=True), key=_by_share)[:most]


def _by_share(one: tuple[str, float]) -> float:
    return -one[1]


def _said(ranked: list[tuple[str, float]], sure: float) -> list[tuple[str, float]]:
    """The same, but "none" leads where its probability is at least `sure`, and only there."""
    none = next((one for one in ranked if one[0] == NONE), (NONE, 0.0))
    others = [one for one in ranked if one[0] != NONE]
    if not others or none[1] >= sure:
        return [none, *others]
    return [others[0], none, *others[1:]]


class Judge:
    """Holds a model's heads and P(retry | cause) as arrays, and of each entry what it adds to an axis' scores."""

    def __init__(self, model: TextModel, retry_given: Mapping[str, Mapping[str, float]]) -> None:
        axes = taxonomy.load()
        self._classes = {head.axis: head.classes for head in model.heads}
        self._said: dict[tuple[str, str], Floats] = {}
        sides = self._classes["side"]
        self._side_of = [axes.side_of(code) for code in self._classes["cause"]]
        self._side_by_code = dict(zip(self._classes["cause"], self._side_of, strict=True))
        self._to_side = np.array([[side == one for side in sides] for one in self._side_of], dtype=np.float32)
        self._of_program = np.array([code in _PROGRAM for code in self._classes["cause"]])
        self._retry = np.array(
            [
                [retry_given.get(code, {}).get(one, 0.0) for one in self._classes["retry"]]
                for code in self._classes["cause"]
            ],
            dtype=np.float32,
        )

    def _add(self, hit: Signature, axis: str) -> Floats:
        found = self._said.get((hit.id, axis))
        if found is None:
            classes = self._classes[axis]
            weights = weights_of(hit, axis)
            said = np.array([weights.get(one, 0.0) for one in classes], dtype=np.float32)
            found = np.log((said + _FLOOR) / (1 + _FLOOR * len(classes))) if said.any() else np.zeros_like(said)
            self._said[hit.id, axis] = found
        return found

    def _joined(self, text: Floats, axis: str, items: Sequence[Item], say: float = 1.0) -> tuple[Floats, float]:
        """Class probabilities after the votes, which count `say` times, and the strongest pull."""
        heard = votes(items, axis)
        if not heard:
            return text, 0.0
        scores = np.log(np.maximum(text, 1e-6))
        for pull, hit in heard:
            scores = scores + say * pull * self._add(hit, axis)
        scores = np.exp(scores - scores.max())
        out: Floats = scores / scores.sum()
        return out, max(pull for pull, _ in heard)

    def _leading(self, axis: str, text: Mapping[str, Floats], items: Sequence[Item]) -> list[tuple[str, float]]:
        """The first classes of an axis after the votes."""
        say = _SYMPTOM_VOTES if axis == "symptom" else 1.0
        return _ranked(self._joined(text[axis], axis, items, say)[0], self._classes[axis], 4)

    def _category(self, text: Mapping[str, Floats], items: Sequence[Item], causes: Floats) -> str:
        """The likeliest category, or "none" where the cause is more likely no program's own."""
        joined: list[float] = self._joined(text["category"], "category", items)[0].tolist()
        shares = dict(zip(self._classes["category"], joined, strict=True))
        none = shares.pop(NONE, 0.0)
        program = float(causes[self._of_program].sum()) + _WITNESS
        told, silent = (1 - none) * program, none * (1 + 2 * _WITNESS - program)
        if not shares or told < _TOLD_CATEGORY * (told + silent):
            return NONE
        return max(shares, key=shares.__getitem__)

    def _outlook(self, text: Floats, items: Sequence[Item], causes: Floats, own_side: Floats, side: str) -> str:
        """The likeliest outlook under the causes of the chosen side.

        That something must be repaired or changed first is said from a lower share on. Where the side is not the
        user's but the other causes make a program's fault likely, nothing helps before somebody has looked.
        """
        witness = np.sqrt(text)
        mixed = witness * ((causes * own_side) @ self._retry / (causes @ own_side + 1e-6) + 1e-3)
        ranked = _ranked(self._joined(mixed / mixed.sum(), "retry", items, _RETRY_VOTES)[0], self._classes["retry"], 4)
        best = ranked[0][0]
        if not best.startswith("helps"):
            return best
        told = dict(ranked)
        repair = told.get("after_repair", 0.0)
        whole = witness * (causes @ self._retry + 1e-3)
        futile = dict(zip(self._classes["retry"], (whole / whole.sum()).tolist(), strict=True)).get("futile", 0.0)
        risky = side != "user" and futile >= _FUTILE
        helps = told.get("helps", 0.0) + told.get("helps_elsewhere", 0.0)
        return "after_repair" if risky or repair >= _REPAIR * (helps + repair) else best

    def judge(self, extracted: Extracted, text: Mapping[str, Floats], known: float) -> Judgement:
        """The labels of one case. `text`: its class probabilities by axis; `known`: share of its features known."""
        items = extracted.items
        codes, sides = self._classes["cause"], self._classes["side"]
        causes, pull = self._joined(text["cause"], "cause", items)
        shares = (causes @ self._to_side) ** 0.3 * text["side"] ** 0.7
        ordered = _ranked(shares / shares.sum(), sides)
        side, best = ordered[0]
        second = ordered[1][1] if len(ordered) > 1 else 0.0
        ranked = _ranked(causes, codes, len(codes))
        first = next(one for one in ranked if self._side_by_code[one[0]] == side)
        ranked = [first, *(one for one in ranked[:4] if one[0] != first[0])][:3]
        category, symptoms = NONE, [(NONE, 1.0)]
        if "category" in text:
            category = self._category(text, items, causes)
        if "symptom" in text:
            symptoms = _said(self._leading("symptom", text, items), _NO_SYMPTOM)
            if is_single(extracted):
                symptoms.sort(key=lambda one: one[0] != NONE)
                symptoms = symptoms if symptoms[0][0] == NONE else [(NONE, 1.0), *symptoms]
        retry = self._outlook(text["retry"], items, causes, self._to_side[:, sides.index(side)], side)
        ruled = next(
            (hit.id for item in items[:1] for hit in item.hits if hit.strength == "decisive" and hit.causes), None
        )
        signals = (
            math.log(max(best, 1e-4) / max(1 - best, 1e-4)),
            best - second,
            1.0 if sides[int(text["side"].argmax())] == side else 0.0,
            min(pull, 2.2),
            1.0 if items and items[0].role == "initiating" else 0.0,
            known,
            1.0 if is_distributed(extracted) else 0.0,
            1.0 if pull == 0 else 0.0,
            math.log1p(extracted.lines) / 5,
        )
        return Judgement(side, tuple(ranked), category, tuple(symptoms), retry, signals, ruled)
