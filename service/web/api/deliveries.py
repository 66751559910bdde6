"""GET /deliveries: undelivered notifications, and resending them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from service.deliveries.records import DeliveryState, EndpointState, StoredDelivery
from service.web import views
from service.web.api.parameters import Cursor, Id, Limit
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["deliveries"])


class DeliveriesPage(BaseModel):
    """One page of deliveries; `endpoints` lists the receivers that are paused or disabled."""

    items: list[StoredDelivery]
    next_cursor: str | None
    endpoints: list["EndpointAnswer"]


class EndpointAnswer(BaseModel):
    """The circuit-breaker state of a receiver."""

    name: str
    failures: int
    paused_until: datetime | None
    disabled_at: datetime | None
    detail: str | None


class SentAgain(BaseModel):
    """A delivery that is due again, under the same id."""

    message_id: int
    endpoint: str


@router.get("/deliveries", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_deliveries(
    services: InjectedServices,
    state: Annotated[DeliveryState, Query(description="given_up: not retried automatically")] = "given_up",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DeliveriesPage:
    """Deliveries in a state, newest message first."""
    page, endpoints = views.deliveries(services, state=state, limit=limit, cursor=cursor)
    return DeliveriesPage(
        items=list(page.items), next_cursor=page.next_cursor, endpoints=[_endpoint(one) for one in endpoints]
    )


@router.post("/deliveries/{message_id}/{endpoint}:resend", responses=answers(401, 403, 404, 422, 503))
def resend_delivery(
    services: InjectedServices,
    principal: Annotated[Principal, ACT],
    message_id: Id,
    endpoint: Annotated[str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.-]+$")],
) -> SentAgain:
    """Retry an ended delivery with a fresh retry schedule."""
    views.send_again(services, message_id, endpoint, principal.name)
    return SentAgain(message_id=message_id, endpoint=endpoint)


def _endpoint(state: EndpointState) -> EndpointAnswer:
    return EndpointAnswer(
        name=state.name,
        failures=state.failures,
        paused_until=state.paused_until,
        disabled_at=state.disabled_at,
        detail=state.detail,
    )
