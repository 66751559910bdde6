"""Site layers: what the site's labels taught, the gate's results, promotion and rollback."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from service.learning.records import Promotion
from service.web import site_layer_views as views
from service.web.auth import ACT, ADMIN, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices
from service.web.site_layer_views import SiteLayerDetail, SiteLayerView

router = APIRouter(tags=["model"])
LayerId = Annotated[str, Path(pattern=r"^site-[0-9a-f]{12}$", description="the id of a site layer")]


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
    return SiteLayersAnswer(items=list(views.layers(services)), promotions=list(views.promotions(services)))


@router.get("/site-layers/{layer_id}", dependencies=[READ], responses=answers(401, 403, 404, 422, 503))
def get_site_layer(services: InjectedServices, layer_id: LayerId) -> SiteLayerDetail:
    """One site layer with the gate's figures and its shadow run."""
    return views.layer(services, layer_id)


@router.post("/site-layers/{layer_id}:promote", responses=answers(401, 403, 404, 409, 422, 503))
def promote_site_layer(
    services: InjectedServices, principal: Annotated[Principal, ADMIN], layer_id: LayerId, body: Reason | None = None
) -> SiteLayerDetail:
    """Put a layer in use that the gate did not refuse; all processes use it within ten seconds."""
    return views.promote(services, principal, layer_id, None if body is None else body.reason)


@router.post("/site-layers/{layer_id}:refuse", responses=answers(401, 403, 404, 409, 422, 503))
def refuse_site_layer(
    services: InjectedServices, principal: Annotated[Principal, ADMIN], layer_id: LayerId, body: Reason | None = None
) -> SiteLayerDetail:
    """Refuse a candidate: it can't be promoted any more."""
    return views.refuse(services, principal, layer_id, None if body is None else body.reason)


@router.post("/site-layers:rollback", responses=answers(401, 403, 409, 503))
def roll_back(services: InjectedServices, principal: Annotated[Principal, ACT]) -> RolledBack:
    """Return to the model before the one in use; all processes use it within ten seconds. Given verdicts stay."""
    before, after = views.rollback(services, principal)
    return RolledBack(before=before, after=after)
