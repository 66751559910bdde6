"""Site layers with the gate's results, shared by pages and API; promotion, refusal and rollback."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from classifiers.model.site.layer import SiteLayerError, parse
from service.learning.gate import decision_in_words
from service.learning.promotion import Promotions
from service.learning.records import GateDecision, Promotion, StoredLayer
from service.learning.shadow_figures import ShadowFigures
from service.web.auth import Principal
from service.web.services import Services

MOST = 50


@dataclass(frozen=True, slots=True)
class SiteLayerView:
    """One layer.

    Attributes:
        id: a digest of its content.
        at: when it was fitted.
        who: who fitted it.
        in_use: whether it is in use now.
        decision: the gate's decision, or that of a person who refused it.
        decision_text: the same as a sentence.
        reasons: the reasons of the decision, in words.
        obstacle: what it would have to be to be promoted; None if a person can promote it.
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
class SiteLayerDetail:
    """One layer with the figures of the gate.

    `figures` holds for each set of cases the values before, after and the interval of the difference.
    """

    layer: SiteLayerView
    figures: dict[str, Any]
    shadow_run: ShadowFigures | None
    promotions: tuple[Promotion, ...]


def layers(services: Services) -> tuple[SiteLayerView, ...]:
    """The stored layers, newest first."""
    with services.reading() as reading:
        active = reading.site_layers.active()
        return tuple(_view(services, one, active) for one in reading.site_layers.list(limit=MOST))


def layer(services: Services, layer_id: str) -> SiteLayerDetail:
    """One layer.

    Raises:
        NotFound: no such layer.
    """
    with services.reading() as reading:
        stored = reading.site_layers.get(layer_id)
        promotions = tuple(one for one in reading.site_layers.promotions(limit=200) if one.layer == layer_id)
        view = _view(services, stored, reading.site_layers.active())
        return SiteLayerDetail(view, dict(stored.gate.figures), stored.gate.shadow, promotions)


def promotions(services: Services) -> tuple[Promotion, ...]:
    """The latest changes of the model in use, newest first."""
    with services.reading() as reading:
        return reading.site_layers.promotions()


def promote(services: Services, principal: Principal, layer_id: str, reason: str | None) -> SiteLayerDetail:
    """Put a layer in use.

    Raises:
        NotFound: no such layer.
        Conflict: the gate refused it, it needs a second person, or it is of another model.
    """
    why = reason or "promoted by a person"
    _promotions(services).promote(layer_id, principal.name, reason=why)
    return layer(services, layer_id)


def refuse(services: Services, principal: Principal, layer_id: str, reason: str | None) -> SiteLayerDetail:
    """Refuse a candidate for good.

    Raises:
        NotFound: no such layer.
        Conflict: it is in use.
    """
    _promotions(services).refuse(layer_id, principal.name, reason=reason)
    return layer(services, layer_id)


def rollback(services: Services, principal: Principal) -> tuple[str, str]:
    """Return to the model before the one in use; returns the former and the present one.

    Raises:
        Conflict: there was none before.
    """
    return _promotions(services).rollback(principal.name)


def _promotions(services: Services) -> Promotions:
    return services.promotions or Promotions(services.store, "")


def _view(services: Services, stored: StoredLayer, active: str) -> SiteLayerView:
    try:
        about = parse(stored.text).about
    except SiteLayerError:
        about = {}
    return SiteLayerView(
        id=stored.id,
        at=stored.at,
        who=stored.who,
        in_use=stored.id == active,
        decision=stored.gate.decision,
        decision_text=decision_in_words(stored.gate.decision),
        reasons=stored.gate.reasons,
        obstacle=_promotions(services).obstacle(stored),
        labels=int(about.get("labels", 0)),
        groups=int(about.get("groups", 0)),
        labellers=dict(about.get("labellers", {})),
        parents=tuple(about.get("parents", ())),
        base=str(about.get("base", "")),
        data=str(about.get("data", "")),
    )
