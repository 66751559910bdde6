"""GET /models, /drift and /site-layers: models, recent failures compared with earlier ones, what labels taught."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.drift.records import DriftReport
from service.learning import registry
from service.learning.promotion import BY_A_PERSON
from service.learning.records import Promotion
from service.learning.registry import SiteLayerDetail, SiteLayerView
from service.web import model_views
from service.web.auth import ACT, ADMIN, READ, Principal
from service.web.error_responses import answers
from service.web.model_views import ModelVersion
from service.web.services import InjectedServices

router = APIRouter(tags=["model"])
LayerId = Annotated[str, Path(pattern=r"^site-[0-9a-f]{12}$", description="the id of a site layer")]


class ModelsAnswer(BaseModel):
    """All models; always one page."""

    items: list[ModelVersion]
    next_cursor: None = None


@router.get("/models", dependencies=[READ], responses=answers(401, 403, 503))
def get_models(services: InjectedServices) -> ModelsAnswer:
    """All models that produced verdicts, with counts and times; the one in use first."""
    return ModelsAnswer(items=list(model_views.versions(services)))


class DriftAnswer(BaseModel):
    """The newest comparison; null until the first one is made."""

    report: DriftReport | None


@router.get("/drift", dependencies=[READ], responses=answers(401, 403, 503))
def get_drift(services: InjectedServices) -> DriftAnswer:
    """Recent failures compared with earlier ones, by cluster; made each hour. Nothing is retrained because of it."""
    with services.reading() as reading:
        return DriftAnswer(report=reading.drift.latest())


class SiteLayersAnswer(BaseModel):
    """All stored layers, newest first; always one page. `promotions`: changes of the model in use, newest first."""

    items: list[SiteLayerView]
    promotions: list[Promotion]
    next_cursor: None = None


class Reason(BaseModel):
    """The reason of a person's decision."""

    reason: Annotated[str, Field(max_length=500)] | None = None


class RolledBack(BaseModel):
    """The model that was in use, and the one that is in use now; `packaged`: without a site layer."""

    before: str
    after: str


@router.get("/site-layers", dependencies=[READ], responses=answers(401, 403, 503))
def get_site_layers(services: InjectedServices) -> SiteLayersAnswer:
    """The stored site layers with the gate's decision and its reasons."""
    with services.reading() as reading:
        return SiteLayersAnswer(
            items=list(registry.layers(reading, services.promotions)),
            promotions=list(reading.site_layers.promotions()),
        )


@router.get("/site-layers/{layer_id}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_site_layer(services: InjectedServices, layer_id: LayerId) -> SiteLayerDetail:
    """One site layer with the gate's figures and its shadow run."""
    with services.reading() as reading:
        return registry.layer(reading, services.promotions, layer_id)


@router.post("/site-layers/{layer_id}:promote", responses=answers(401, 403, 404, 409, 422, 503))
def promote_site_layer(
    services: InjectedServices, principal: Annotated[Principal, ADMIN], layer_id: LayerId, body: Reason | None = None
) -> SiteLayerDetail:
    """Put a layer in use that the gate did not refuse; all processes use it within ten seconds."""
    reason = None if body is None else body.reason
    services.promotions.promote(layer_id, principal.name, reason=reason or BY_A_PERSON)
    return get_site_layer(services, layer_id)


@router.post("/site-layers/{layer_id}:refuse", responses=answers(401, 403, 404, 409, 422, 503))
def refuse_site_layer(
    services: InjectedServices, principal: Annotated[Principal, ADMIN], layer_id: LayerId, body: Reason | None = None
) -> SiteLayerDetail:
    """Refuse a candidate: it can't be promoted any more."""
    services.promotions.refuse(layer_id, principal.name, reason=None if body is None else body.reason)
    return get_site_layer(services, layer_id)


@router.post("/site-layers:rollback", responses=answers(401, 403, 409, 503))
def roll_back(services: InjectedServices, principal: Annotated[Principal, ACT]) -> RolledBack:
    """Return to the model before the one in use; all processes use it within ten seconds. Given verdicts stay."""
    before, after = services.promotions.rollback(principal.name)
    return RolledBack(before=before, after=after)
