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
from classifiers.extraction.evidence_items import EvidenceItem, ExtractedCase
from classifiers.model.linear_model import Floats, TextModel
from classifiers.model.vectorizer import is_distributed, is_single
from classifiers.signatures import Signature

NONE: Final = "none"
_PULL: Final[Mapping[str, float]] = {"decisive": 1.8, "strong": 0.7, "weak": 0.15}
_PLACE: Final = (1.0, 0.35, 0.2)
# What the confidence curve reads of a judgement, in this order; a model trained for another list does not fit.
# `owner`: how clear it is whether the user or somebody else has to act, however near the others' sides are.
SIGNALS: Final = (
    "odds", "margin", "agreement", "pull", "beginning", "known", "several", "unsigned", "length", "owner",
)  # fmt: skip
_FLOOR: Final = 0.01
# A program's own failure nearly always has a category, the platform's seldom: what the heads of category and cause say
# are joined as two witnesses, neither ever surer than this, and a category is told from this share on. A cause of the
# program doubts "none" only so far: a crash without a word is the program's, yet of no category.
_PROGRAM: Final = ("USER.1", "USER.3", "USER.4")
_WITNESS: Final = 0.05
_DOUBT: Final = 0.8
_TOLD_CATEGORY: Final = 0.75
# What a program misses around it (a path, a library, a right) is the user's to bring: where the platform itself lacks
# such a thing, no program failed.
_SURROUNDINGS: Final = "EE."
_NO_SYMPTOM: Final = 0.6
# Started again before a repair a job waits and fails once more: it is held back where every other would, by
# all that is known or by the words alone, which tell a standing fault from a passing one better than its cause does.
_REPAIR: Final = 0.5
_RETRY_VOTES: Final = 0.3
# An entry tells what failed, seldom at which stage: symptoms are left to the words (docs/experiments.md).
_SYMPTOM_VOTES: Final = 0.6
# Nor is it tried again where all causes together, or the words alone, make this likely that it fails again for good.
_FUTILE: Final = 0.35
_FUTILE_SAID: Final = 0.3
_REMEMBERED: Final = 50_000
_UNKNOWN: Final = np.zeros(0, dtype=np.float32)

# What entries say of a case: how much each counts, and the entry.
Voices = Sequence[tuple[float, Signature]]


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


def votes(items: Sequence[EvidenceItem], axis: str) -> list[tuple[float, Signature]]:
    """What entries say of an axis: (pull, entry), those on the first lines most."""
    return [(pull, hit) for pull, hit in heard(items) if weights_of(hit, axis)]


def heard(items: Sequence[EvidenceItem]) -> list[tuple[float, Signature]]:
    """How much each entry counts, whatever it speaks of: those on the first lines most.

    What the scheduler said counts in full where it is decisive or where the log says nothing, else less: a time limit
    is also what a hang looks like from outside.
    """
    out: list[tuple[float, Signature]] = []
    beginning = [item for item in items if item.role == "initiating" and not item.from_scheduler]
    leading = beginning or [item for item in items if item.hits and not item.from_scheduler]
    for place, item in zip(_PLACE, leading, strict=False):
        out += [(place * _PULL[hit.strength] * (1.0 if hit.role == "initiating" else 0.6), hit) for hit in item.hits]
    log_speaks = bool(beginning) or any(one.hits for one in leading)
    for item in items:
        if item.from_scheduler:
            for hit in item.hits:
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


def _ranks(shares: Floats) -> list[list[int]]:
    """Of each row the columns, the greatest share first; of equal ones the earlier."""
    ranks: list[list[int]] = np.argsort(-shares, axis=1, kind="stable").tolist()
    return ranks


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
        self._said: dict[tuple[str, str, float], Floats | None] = {}
        sides = self._classes["side"]
        self._side_of = [axes.side_of(code) for code in self._classes["cause"]]
        self._to_side = np.array([[side == one for side in sides] for one in self._side_of], dtype=np.float32)
        self._of_program = np.array([code in _PROGRAM for code in self._classes["cause"]])
        self._retry = np.array(
            [
                [retry_given.get(code, {}).get(one, 0.0) for one in self._classes["retry"]]
                for code in self._classes["cause"]
            ],
            dtype=np.float32,
        )

    def _add(self, hit: Signature, axis: str, pull: float) -> Floats | None:
        """What an entry that pulls so much adds to the scores of an axis, None where it says nothing of it."""
        found = self._said.get((hit.id, axis, pull), _UNKNOWN)
        if found is not _UNKNOWN:
            return found
        classes = self._classes[axis]
        weights = weights_of(hit, axis)
        added: Floats | None = None
        if weights:
            said = np.array([weights.get(one, 0.0) for one in classes], dtype=np.float32)
            added = np.log((said + _FLOOR) / (1 + _FLOOR * len(classes))) if said.any() else np.zeros_like(said)
            added = pull * added
        if len(self._said) < _REMEMBERED:
            self._said[hit.id, axis, pull] = added
        return added

    def _joined(
        self, text: Floats, axis: str, voices: Sequence[Voices], say: float = 1.0
    ) -> tuple[Floats, list[float]]:
        """Class probabilities after the votes, which count `say` times, and the strongest pull, of each case."""
        scores = np.log(np.maximum(text, 1e-6))
        pulls = [0.0] * len(text)
        for row, said in enumerate(voices):
            mine = scores[row]
            for pull, hit in said:
                added = self._add(hit, axis, say * pull)
                if added is not None:
                    mine += added
                    pulls[row] = max(pulls[row], pull)
        moved = [row for row, pull in enumerate(pulls) if pull]
        if not moved:
            return text, pulls
        out = text.copy()
        changed = scores[moved]
        changed = np.exp(changed - changed.max(axis=1, keepdims=True))
        out[moved] = changed / changed.sum(axis=1, keepdims=True)
        return out, pulls

    def _symptoms(self, text: Floats, voices: Sequence[Voices]) -> list[list[tuple[str, float]]]:
        """The first symptoms of each case after the votes; "none" leads only where it is likely enough."""
        classes = self._classes["symptom"]
        joined = self._joined(text, "symptom", voices, _SYMPTOM_VOTES)[0]
        return [
            _said([(classes[place], shares[place]) for place in ranks[:4]], _NO_SYMPTOM)
            for ranks, shares in zip(_ranks(joined), joined.tolist(), strict=True)
        ]

    def _categories(self, text: Floats, voices: Sequence[Voices], causes: Floats, sides: Sequence[str]) -> list[str]:
        """The likeliest category of each case, or "none" where the cause is more likely no program's own."""
        classes = self._classes["category"]
        joined = self._joined(text, "category", voices)[0]
        program = causes[:, self._of_program].sum(axis=1).tolist()
        if NONE in classes:
            nones = joined[:, classes.index(NONE)].tolist()
            joined = joined[:, [place for place, one in enumerate(classes) if one != NONE]]
        else:
            nones = [0.0] * len(joined)
        shares = [one for one in classes if one != NONE]
        best = joined.argmax(axis=1).tolist() if shares else []
        out = []
        for row, none in enumerate(nones):
            mine = program[row] + _WITNESS
            told, silent = (1 - none) * mine, none * (1 + _DOUBT - program[row])
            label = NONE if not shares or told < _TOLD_CATEGORY * (told + silent) else shares[best[row]]
            out.append(NONE if sides[row] != "user" and label.startswith(_SURROUNDINGS) else label)
        return out

    def _outlooks(
        self, text: Floats, voices: Sequence[Voices], causes: Floats, own_side: Floats, sides: Sequence[str]
    ) -> list[str]:
        """The likeliest outlook of each case under the causes of the chosen side.

        That something must be repaired or changed first is said from a lower share on. Where the side is not the
        user's but the other causes make a program's fault likely, nothing helps before somebody has looked.
        """
        classes = self._classes["retry"]
        witness = np.sqrt(text)
        own = causes * own_side
        mixed = witness * (own @ self._retry / (own.sum(axis=1, keepdims=True) + 1e-6) + 1e-3)
        joined = self._joined(mixed / mixed.sum(axis=1, keepdims=True), "retry", voices, _RETRY_VOTES)[0]
        whole = witness * (causes @ self._retry + 1e-3)
        whole /= whole.sum(axis=1, keepdims=True)
        hopeless = classes.index("futile") if "futile" in classes else None
        best = np.argmax(joined, axis=1).tolist()
        out = []
        for row, (shares, said) in enumerate(zip(joined.tolist(), text.tolist(), strict=True)):
            label = classes[best[row]]
            if label.startswith("helps"):
                risky = (
                    hopeless is not None
                    and sides[row] != "user"
                    and (whole[row, hopeless] >= _FUTILE or said[hopeless] >= _FUTILE_SAID)
                )
                waits = any(_waits(dict(zip(classes, one, strict=True))) for one in (shares, said))
                label = "after_repair" if risky or waits else label
            out.append(label)
        return out

    def judge(self, extracted: ExtractedCase, text: Mapping[str, Floats], known: float) -> Judgement:
        """The labels of one case. `text`: its class probabilities by axis; `known`: share of its features known."""
        rows = {axis: values[np.newaxis, :] for axis, values in text.items()}
        return self.judge_all([extracted], rows, [known])[0]

    def judge_all(
        self, cases: Sequence[ExtractedCase], text: Mapping[str, Floats], known: Sequence[float]
    ) -> list[Judgement]:
        """The labels of each case. `text`: by axis a row of class probabilities a case; `known` as in `judge`."""
        if not cases:
            return []
        codes, classes = self._classes["cause"], self._classes["side"]
        voices = [heard(one.items) for one in cases]
        causes, pulls = self._joined(text["cause"], "cause", voices)
        weighed = np.array([row @ self._to_side for row in causes]) ** 0.3 * text["side"] ** 0.7
        weighed = weighed / weighed.sum(axis=1, keepdims=True)
        side_ranks, cause_ranks = _ranks(weighed), _ranks(causes)
        chosen = [ranks[0] for ranks in side_ranks]
        sides = [classes[place] for place in chosen]
        none = [NONE] * len(cases)
        categories = self._categories(text["category"], voices, causes, sides) if "category" in text else none
        symptoms = self._symptoms(text["symptom"], voices) if "symptom" in text else [[(NONE, 1.0)] for _ in cases]
        outlooks = self._outlooks(text["retry"], voices, causes, self._to_side.T[chosen], sides)
        first = text["side"].argmax(axis=1).tolist()
        users = [place for place, one in enumerate(classes) if one == "user"]
        owned = weighed[:, users].sum(axis=1).tolist()
        side_shares, cause_shares = weighed.tolist(), causes.tolist()
        out = []
        for row, one in enumerate(cases):
            items, side, pull = one.items, sides[row], pulls[row]
            shares, ranks = side_shares[row], side_ranks[row]
            best = shares[ranks[0]]
            second = shares[ranks[1]] if len(ranks) > 1 else 0.0
            leading = next(place for place in cause_ranks[row] if self._side_of[place] == side)
            ranked = [leading, *(place for place in cause_ranks[row][:4] if place != leading)][:3]
            told = symptoms[row]
            if is_single(one):
                told.sort(key=_is_told)
                told = told if told[0][0] == NONE else [(NONE, 1.0), *told]
            ruled = next(
                (hit.id for item in items[:1] for hit in item.hits if hit.strength == "decisive" and hit.causes), None
            )
            signals = (
                math.log(max(best, 1e-4) / max(1 - best, 1e-4)),
                best - second,
                1.0 if classes[first[row]] == side else 0.0,
                min(pull, 2.2),
                1.0 if items and items[0].role == "initiating" else 0.0,
                float(known[row]),
                1.0 if is_distributed(one) else 0.0,
                1.0 if pull == 0 else 0.0,
                math.log1p(one.lines) / 5,
                abs(math.log(max(owned[row], 1e-4) / max(1 - owned[row], 1e-4))),
            )
            labels = tuple((codes[place], cause_shares[row][place]) for place in ranked)
            out.append(Judgement(side, labels, categories[row], tuple(told), outlooks[row], signals, ruled))
        return out


def _waits(outlook: Mapping[str, float]) -> bool:
    """Whether of what is no user's to change a repair comes first, likely enough to hold the job back."""
    repair = outlook.get("after_repair", 0.0)
    helps = outlook.get("helps", 0.0) + outlook.get("helps_elsewhere", 0.0)
    return repair > 0 and repair >= _REPAIR * (helps + repair)


def _is_told(one: tuple[str, float]) -> bool:
    return one[0] != NONE
