"""Site layers with the gate's results, as pages and API show them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.db.session import ReadSession
from service.learning.gate import decision_in_words
from service.learning.promotion import Promotions
from service.learning.records import GateDecision, Promotion, StoredLayer
from service.learning.shadow_figures import ShadowFigures

MOST = 50
MOST_REVIEWED = 100
_REASONS = {"left_out": "contradicts its group, not learned", "doubtful": "unlikely by the other labels"}


@dataclass(frozen=True, slots=True)
class SiteLayerView:
    """One layer.

    Attributes:
        id: a digest of its content.
        at: when it was fitted.
        who: who fitted it.
        in_use: whether it gives verdicts now: it was promoted last, and fits the packaged model.
        decision: the gate's decision, or that of a person who refused it.
        decision_text: the same as a sentence.
        reasons: the reasons of the decision, in words.
        obstacle: why it cannot be promoted; None if a person can promote it.
        labels: the number of labels that it rests on.
        groups: the number of labelled groups.
        labellers: labels of each labeller.
        parents: the layers that it follows.
        base: the packaged model that it was fitted on.
        data: digest of the labels.
    """

    id: str
    at: datetime
    who: str
    in_use: bool
    decision: GateDecision
    decision_text: str
    reasons: tuple[str, ...]
    obstacle: str | None
    labels: int
    groups: int
    labellers: dict[str, int]
    parents: tuple[str, ...]
    base: str
    data: str


@dataclass(frozen=True, slots=True)
class LabelToReview:
    """A label that a person should look at again.

    Attributes:
        case: the id of the labelled case.
        failure: the id of its failure; None where the case is no stored failure.
        reason: why, in words.
    """

    case: str
    failure: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class SiteLayerDetail:
    """One layer with the figures of the gate.

    `figures` holds for each set of cases the values before, after and the interval of the difference; `review` the
    labels to look at again.
    """

    layer: SiteLayerView
    figures: dict[str, Any]
    shadow_run: ShadowFigures | None
    promotions: tuple[Promotion, ...]
    review: tuple[LabelToReview, ...] = ()


def layers(reading: ReadSession, known: Promotions) -> tuple[SiteLayerView, ...]:
    """The stored layers, newest first."""
    active = reading.site_layers.active()
    return tuple(_view(known, one, active) for one in reading.site_layers.list(limit=MOST))


def layer(reading: ReadSession, known: Promotions, layer_id: str) -> SiteLayerDetail:
    """One layer.

    Raises:
        NotFound: no such layer.
    """
    stored = reading.site_layers.get(layer_id)
    promotions = tuple(one for one in reading.site_layers.promotions(limit=200) if one.layer == layer_id)
    view = _view(known, stored, reading.site_layers.active())
    return SiteLayerDetail(view, dict(stored.gate.figures), stored.gate.shadow, promotions, _review(stored))


def _review(stored: StoredLayer) -> tuple[LabelToReview, ...]:
    """The labels that contradict their group, then those that the other labels make unlikely."""
    found = [
        LabelToReview(str(case), _failure_of(str(case)), reason)
        for name, reason in _REASONS.items()
        for case in stored.about.get(name, ())
    ]
    return tuple(found[:MOST_REVIEWED])


def _failure_of(case: str) -> int | None:
    """The failure of a labelled case, whose id is `faultline-<cluster>-<failure>`."""
    number = case.rpartition("-")[2]
    return int(number) if case.startswith("faultline-") and number.isdecimal() and number.isascii() else None


def _view(known: Promotions, stored: StoredLayer, active: str) -> SiteLayerView:
    about = stored.about
    return SiteLayerView(
        id=stored.id,
        at=stored.at,
        who=stored.who,
        in_use=stored.id == active and known.gives_verdicts(stored),
        decision=stored.gate.decision,
        decision_text=decision_in_words(stored.gate.decision),
        reasons=stored.gate.reasons,
        obstacle=known.obstacle(stored),
        labels=int(about.get("labels", 0)),
        groups=int(about.get("groups", 0)),
        labellers=dict(about.get("labellers", {})),
        parents=tuple(about.get("parents", ())),
        base=str(about.get("base", "")),
        data=str(about.get("data", "")),
    )
