"""Calibrated confidence of the side, and the threshold below which a verdict abstains."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from classifiers.model import constants

# What the calibration curve reads, in this order; a model trained for another list is refused.
#
# - log_odds, margin: of the best side, and its lead over the second
# - text_agrees: whether the text model alone chooses the same side
# - vote, no_vote: coefficient of the strongest vote of the catalogue; whether there is none
# - has_onset: whether the first item of evidence is an initiating one
# - known_words: share of the features that the model knows
# - distributed: whether the job had several processes
# - length: logarithm of the number of lines
# - owner_log_odds: how clear it is whether the user or somebody else has to act
# - hardware, system: whether it is that side; sides differ in how sure their wordings are
# - two_sided: how far the catalogue entries on the first line leave several sides open
# - cause_log_odds: of the best cause of that side; it is last, since it has no part in the fit on held-out kinds
CONFIDENCE_FEATURES: Final = (
    "log_odds", "margin", "text_agrees", "vote", "has_onset", "known_words", "distributed", "no_vote", "length",
    "owner_log_odds", "hardware", "system", "two_sided", "cause_log_odds",
)  # fmt: skip
_SCORE_LIMIT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic curve over `CONFIDENCE_FEATURES`: the probability that the side is right.

    A verdict whose confidence is below `threshold` abstains; on a case with node events, below
    `constants.EVENTS_ANSWERED_FROM` if that is lower.
    """

    weights: tuple[float, ...]
    intercept: float
    threshold: float

    def confidence(self, values: Sequence[float]) -> float:
        """Probability (0..1) that the side is right."""
        score = self.intercept + sum(weight * value for weight, value in zip(self.weights, values, strict=True))
        return 1.0 / (1.0 + math.exp(-max(-_SCORE_LIMIT, min(_SCORE_LIMIT, score))))

    def least_confidence(self, *, has_events: bool) -> float:
        """The confidence below which a verdict abstains.

        Args:
            has_events: whether the case has node events.
        """
        return min(self.threshold, constants.EVENTS_ANSWERED_FROM) if has_events else self.threshold


def with_agreement(confidence: float, agreement: float | None, cause_log_odds: float) -> float:
    """The confidence (0..1) of a verdict on a case with node events.

    There the agreement says what the cause says elsewhere, and better: the part of the cause is taken out.

    Args:
        confidence: that of the curve.
        agreement: how much what the failure may have begun with speaks for the side, None where nothing tells.
        cause_log_odds: the last of the `CONFIDENCE_FEATURES`.
    """
    if agreement is None or not 0.0 < confidence < 1.0:
        return confidence
    odds = math.log(confidence / (1.0 - confidence)) - constants.UNSEEN_CAUSE * cause_log_odds
    score = constants.EVENTS_SLOPE * odds + constants.EVENTS_OFFSET + constants.EVENTS_AGREEMENT * agreement
    return 1.0 / (1.0 + math.exp(-score))


# Of data from which nothing can be learned: all right, or all wrong.
UNFITTED: Final = Calibration((1.0, *(0.0,) * (len(CONFIDENCE_FEATURES) - 1)), 0.0, 0.5)


def fit_calibration(
    features: Sequence[Sequence[float]], right: Sequence[bool], weights: Sequence[float]
) -> Calibration:
    """Curve and threshold from held-out labels, with the confidence that failures of unknown sources call for.

    Held-out kinds are worded so much like the others that the cause tells nothing more of the side there. On failures
    of unknown sources it does: its weight is fitted on these, like slope and offset.

    Args:
        features: of each sample the `CONFIDENCE_FEATURES`.
        right: whether its side is right.
        weights: its weight. Only the ratios count.
    """
    if len(set(right)) == 1 or not right:
        return UNFITTED
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - for training only; a start without is faster

    share = np.asarray(weights) / sum(weights)
    solver = LogisticRegression(C=1.0, max_iter=1_000)
    solver.fit(np.asarray(features)[:, :-1], np.asarray(right), sample_weight=share * len(share))
    curve = Calibration(
        (*(float(weight) * constants.UNSEEN_SLOPE for weight in solver.coef_[0]), constants.UNSEEN_CAUSE),
        float(solver.intercept_[0]) * constants.UNSEEN_SLOPE + constants.UNSEEN_OFFSET,
        0.0,
    )
    confidences = np.array([curve.confidence(row) for row in features])
    return Calibration(curve.weights, curve.intercept, _threshold(confidences, np.asarray(right), share))


def _threshold(confidences: np.ndarray, right: np.ndarray, share: np.ndarray) -> float:
    """The lowest confidence from which enough sides are right, or that of the greatest share that may abstain."""
    order = np.argsort(confidences, kind="stable")
    answered = np.cumsum(share[order][::-1])[::-1]
    correct = np.cumsum((right[order] * share[order])[::-1])[::-1]
    allowed = int(np.searchsorted(-answered, -(1 - constants.ABSTAINED_LIMIT), side="right"))
    enough = np.flatnonzero(correct[:allowed] >= constants.RIGHT_WHEN_ANSWERED * answered[:allowed])
    place = int(enough[0]) if len(enough) else max(0, allowed - 1)
    return float(confidences[order[place]])
