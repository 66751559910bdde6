"""Second stage: joins the text model's probabilities with the votes of the signature catalogue, and makes axes agree.

Each axis has a conditional logit over the text model's log probabilities, the votes of catalogue entries, and what the
axes before it say: causes read the text model's side, the side reads the causes, the category whether the cause is the
program's own, the retry outlook how failures of these causes end. Coefficients are fitted on held-out kinds
(`fusion_fitting`). Of the fused probabilities the labels follow, with a few thresholds for costs that differ.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from classifiers import taxonomy
from classifiers.model import constants
from classifiers.model.conditional_logit import ConditionalLogit
from classifiers.model.fusion_input import GROUPS, FusionInput
from classifiers.model.linear_model import Floats
from classifiers.model.vote_matrix import VoteMatrix
from classifiers.signatures import Catalogue

NONE: Final = "none"
# Number of features of each axis before the votes; see `LabelFusion.features_before_votes`.
FEATURES_BEFORE_VOTES: Final[Mapping[str, int]] = {"cause": 2, "side": 2, "category": 2, "symptom": 1, "retry": 3}
_TOP: Final = 3


@dataclass(frozen=True, slots=True)
class FusedLabels:
    """The labels of one case.

    Attributes:
        side: hardware, system or user.
        causes: at most three causes with their probabilities, best first; the first one is of the chosen side.
        category: the failure category, or "none".
        symptoms: the likeliest symptoms and "none" with their probabilities: the chosen one, then the others, best
            first.
        retry: the retry outlook.
        confidence_features: what calibration reads (`calibration.CONFIDENCE_FEATURES`).
        deciding_entry: the id of a decisive catalogue entry on the first line, None without one.
        contradicted: whether the catalogue entries alone would choose another side.
    """

    side: str
    causes: tuple[tuple[str, float], ...]
    category: str
    symptoms: tuple[tuple[str, float], ...]
    retry: str
    confidence_features: tuple[float, ...]
    deciding_entry: str | None
    contradicted: bool = False


def number_of_coefficients(axis: str) -> int:
    """The number of coefficients that the conditional logit of an axis has."""
    return FEATURES_BEFORE_VOTES[axis] + (0 if axis == "side" else len(GROUPS))


class LabelFusion:
    """Joins text model and catalogue.

    Args:
        classes: by axis the classes of the text model, in the order of its probabilities.
        coefficients: by axis its conditional logit.
        retry_by_cause: P(retry outlook | cause).
        catalogue: the entries that vote.
        category_threshold: the probability from which a category is reported.
    """

    def __init__(
        self,
        classes: Mapping[str, Sequence[str]],
        coefficients: Mapping[str, ConditionalLogit],
        retry_by_cause: Mapping[str, Mapping[str, float]],
        catalogue: Catalogue,
        category_threshold: float = constants.CATEGORY_THRESHOLD,
    ) -> None:
        self.classes = {axis: tuple(codes) for axis, codes in classes.items()}
        self._coefficients = dict(coefficients)
        self._category_threshold = category_threshold
        side_of = taxonomy.load().side_of
        self._side_of = tuple(side_of(code) for code in self.classes["cause"])
        self._sides = np.array(
            [[side == other for other in self.classes["side"]] for side in self._side_of], np.float32
        )
        voted = {axis: self.classes[axis] for axis in self.classes if axis != "side"}
        self.votes = VoteMatrix(catalogue, voted, self._sides)
        self._program = np.array([code in constants.PROGRAM_CAUSES for code in self.classes["cause"]])
        self._no_category = np.array([code == NONE for code in self.classes["category"]])
        self._helped_by_retry = {entry.id for entry in catalogue.entries if (entry.retry or "").startswith("helps")}
        outlooks = self.classes["retry"]
        self._retry_by_cause = np.array(
            [
                [retry_by_cause.get(code, {}).get(outlook, 0.0) for outlook in outlooks]
                for code in self.classes["cause"]
            ],
            np.float32,
        )

    def features_before_votes(self, axis: str, text: Mapping[str, Floats], fused: Mapping[str, Floats]) -> Floats:
        """What an axis reads beside votes, samples × classes × features.

        Args:
            axis: the axis.
            text: by axis the text model's probabilities, samples × classes.
            fused: by axis the fused probabilities of those that come before it (cause, then side).
        """
        own = _log(text[axis])
        if axis == "cause":
            return np.stack([own, _log(text["side"]) @ self._sides.T], axis=2)
        if axis == "side":
            return np.stack([own, _log(fused["cause"] @ self._sides)], axis=2)
        if axis == "category":
            program = fused["cause"][:, self._program].sum(axis=1, keepdims=True)
            matching = np.where(self._no_category, 1 - program, program)
            return np.stack([own, _log(matching, constants.PROGRAM_CAUSE_FLOOR)], axis=2)
        if axis == "retry":
            chosen = self._sides.T[fused["side"].argmax(axis=1)]
            causes = fused["cause"]
            of_side = causes * chosen
            of_side = of_side / np.maximum(of_side.sum(axis=1, keepdims=True), constants.PROBABILITY_FLOOR)
            means = (of_side @ self._retry_by_cause, causes @ self._retry_by_cause)
            return np.stack([own, *(_log(mean, constants.UNMENTIONED_LABEL) for mean in means)], axis=2)
        return own[:, :, np.newaxis]

    def probabilities(self, inputs: Sequence[FusionInput], text: Mapping[str, Floats]) -> dict[str, Floats]:
        """By axis the fused class probabilities, samples × classes."""
        fused: dict[str, Floats] = {}
        votes = self.votes.indexed(inputs)
        for axis, before in FEATURES_BEFORE_VOTES.items():
            weights = self._coefficients[axis].coefficients
            scores = ConditionalLogit(weights[:before]).scores(self.features_before_votes(axis, text, fused))
            if axis == "side":
                scores = scores + self.votes.against_decided(inputs)
            else:
                scores = scores + self.votes.scores(votes, axis, weights[before:])
            shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
            fused[axis] = shifted / shifted.sum(axis=1, keepdims=True)
        return fused

    def labels(
        self, inputs: Sequence[FusionInput], text: Mapping[str, Floats], known_words: Sequence[float]
    ) -> list[FusedLabels]:
        """The labels of each case.

        Args:
            inputs: what fusion reads of each case.
            text: by axis the text model's probabilities, samples × classes.
            known_words: of each case the share of its features that the text model knows.
        """
        return self.labels_of(inputs, text, self.probabilities(inputs, text), known_words)

    def labels_of(
        self,
        inputs: Sequence[FusionInput],
        text: Mapping[str, Floats],
        fused: Mapping[str, Floats],
        known_words: Sequence[float],
    ) -> list[FusedLabels]:
        """The labels that follow from fused probabilities; the arguments are those of `labels`."""
        chosen = fused["side"].argmax(axis=1).tolist()
        sides = [self.classes["side"][column] for column in chosen]
        causes = self._causes(fused["cause"], sides)
        categories = self._categories(fused["category"], sides)
        symptoms = self._symptoms(fused["symptom"], inputs)
        outlooks = self._outlooks(fused["retry"], text["retry"], sides, inputs)
        certain = _log_odds(np.array([ranked[0][1] for ranked in causes]))
        confidence = self._confidence_features(inputs, text["side"], fused["side"], known_words, certain)
        entries = ([case_input.deciding_entry for case_input in inputs], self.votes.contradict(inputs, chosen))
        columns = (sides, causes, categories, symptoms, outlooks, confidence, *entries)
        return [FusedLabels(*row) for row in zip(*columns, strict=True)]

    def _causes(self, shares: Floats, sides: Sequence[str]) -> list[tuple[tuple[str, float], ...]]:
        """The best cause of the chosen side, then the likeliest others."""
        codes = self.classes["cause"]
        ranked = []
        for row, order, side in zip(shares.tolist(), _ranks(shares), sides, strict=True):
            first = next(column for column in order if self._side_of[column] == side)
            columns = [first, *(column for column in order if column != first)][:_TOP]
            ranked.append(tuple((codes[column], row[column]) for column in columns))
        return ranked

    def _categories(self, shares: Floats, sides: Sequence[str]) -> list[str]:
        """The likeliest category, or "none" where none is likely enough."""
        return [
            label if share >= self._category_threshold else NONE for label, share in self.best_categories(shares, sides)
        ]

    def best_categories(self, shares: Floats, sides: Sequence[str]) -> list[tuple[str, float]]:
        """Of each sample its likeliest category and the probability that one applies; "none" and 0 where none can.

        Args:
            shares: the fused probabilities of the categories, samples × classes.
            sides: the chosen side of each sample.
        """
        codes = [code for code in self.classes["category"] if code != NONE]
        if not codes:
            return [(NONE, 0.0)] * len(sides)
        others = shares[:, ~self._no_category]
        found = []
        for best, share, side in zip(others.argmax(axis=1), others.sum(axis=1).tolist(), sides, strict=True):
            is_foreign = side != "user" and codes[best].startswith(constants.ENVIRONMENT_CATEGORIES)
            found.append((NONE, 0.0) if is_foreign else (codes[best], share))
        return found

    def _symptoms(self, shares: Floats, inputs: Sequence[FusionInput]) -> list[tuple[tuple[str, float], ...]]:
        """The likeliest symptoms; "none" leads where it is likely enough, or where the job had one process."""
        codes = self.classes["symptom"]
        found = []
        for row, order, one in zip(shares.tolist(), _ranks(shares), inputs, strict=True):
            others = [(codes[column], row[column]) for column in order[: _TOP + 1] if codes[column] != NONE]
            none = (NONE, row[codes.index(NONE)] if NONE in codes else 0.0)
            leads = one.single_process or not others or none[1] >= constants.NO_SYMPTOM_THRESHOLD
            first = none if leads else others[0]
            rest = others if leads else sorted([none, *others[1:]], key=lambda ranked: -ranked[1])
            found.append((first, *rest))
        return found

    def _outlooks(self, shares: Floats, text: Floats, sides: Sequence[str], inputs: Sequence[FusionInput]) -> list[str]:
        """The likeliest retry outlook; a retry that may well be futile, or needs a repair first, is held back.

        The text alone holds no job back where a decisive entry on the first line of a longer log says itself that a
        retry helps: its words are those of all lines, most of which tell what followed. A short log is what somebody
        took for the essential lines.
        """
        codes = self.classes["retry"]
        labels = []
        for best, fused_row, text_row, side, one in zip(
            shares.argmax(axis=1), shares.tolist(), text.tolist(), sides, inputs, strict=True
        ):
            label = codes[best]
            if label.startswith("helps"):
                is_known = one.deciding_entry in self._helped_by_retry and one.lines > constants.SHORT_LOG_LINES
                rows = (fused_row,) if is_known else (fused_row, text_row)
                outlooks = [dict(zip(codes, row, strict=True)) for row in rows]
                futile = side != "user" and any(
                    outlook.get("futile", 0.0) >= constants.FUTILE_THRESHOLD for outlook in outlooks
                )
                label = "after_repair" if futile or any(map(_needs_repair, outlooks)) else label
            labels.append(label)
        return labels

    def _confidence_features(
        self,
        inputs: Sequence[FusionInput],
        text: Floats,
        fused: Floats,
        known_words: Sequence[float],
        causes: Floats,
    ) -> list[tuple[float, ...]]:
        codes = self.classes["side"]
        user = np.array([code == "user" for code in codes])
        chosen = [codes[column] for column in fused.argmax(axis=1)]
        two_sided = self.votes.open_sides(inputs)
        owner = np.abs(_log_odds(fused[:, user].sum(axis=1)))
        ranked = np.sort(fused, axis=1)[:, ::-1]
        margin = ranked[:, 0] - (ranked[:, 1] if ranked.shape[1] > 1 else 0)
        agrees = text.argmax(axis=1) == fused.argmax(axis=1)
        votes = self.votes.strongest(inputs, "cause", self._coefficients["cause"].coefficients[2:])
        return [
            (
                float(odds),
                float(lead),
                float(same),
                vote or 0.0,
                float(one.has_onset),
                float(known),
                float(one.distributed),
                float(vote is None),
                math.log1p(one.lines) / 5,
                float(clear),
                float(side == "hardware"),
                float(side == "system"),
                two,
                float(cause),
            )
            for odds, lead, same, vote, one, known, clear, side, two, cause in zip(
                _log_odds(ranked[:, 0]),
                margin,
                agrees,
                votes,
                inputs,
                known_words,
                owner,
                chosen,
                two_sided,
                causes,
                strict=True,
            )
        ]


def _needs_repair(outlook: Mapping[str, float]) -> bool:
    """Whether, of what is no user's to change, a repair comes first likely enough to hold the job back."""
    repair = outlook.get("after_repair", 0.0)
    helps = outlook.get("helps", 0.0) + outlook.get("helps_elsewhere", 0.0)
    return repair > 0 and repair >= constants.REPAIR_THRESHOLD * (helps + repair)


def _ranks(shares: Floats) -> list[list[int]]:
    """Of each row the columns, the greatest share first; of equal ones the earlier."""
    ranks: list[list[int]] = np.argsort(-shares, axis=1, kind="stable").tolist()
    return ranks


def _log(shares: Floats, floor: float = constants.PROBABILITY_FLOOR) -> Floats:
    return np.log(np.maximum(shares, floor))


def _log_odds(shares: Floats) -> Floats:
    clipped = np.clip(shares, 1e-4, 1 - 1e-4)
    odds: Floats = np.log(clipped / (1 - clipped))
    return odds
