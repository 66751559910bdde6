"""GET /automation and the kill switch."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.resubmissions.records import Rate, RequestState, Switch
from service.web import automation_views as views
from service.web.api.parameters import RequestBody
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["automation"])


class Stop(RequestBody):
    """The reason for stopping automation."""

    reason: Annotated[str, Field(max_length=500)] | None = None


class Storm(BaseModel):
    """A key (cause, cluster, resource) whose resubmissions are held by the retry-storm limit."""

    key: str
    held_since: datetime
    reason: str
    trial: bool = Field(description="one trial was released since then, and its outcome is not known yet")


class AutomationAnswer(BaseModel):
    """Kill switch, requests by state, held storms and success rates."""

    switch: Switch
    policy: str
    counts: dict[RequestState, int]
    storms: list[Storm]
    rates: list[Rate]


@router.get("/automation", dependencies=[READ], responses=answers(401, 403, 503))
def get_automation(services: InjectedServices) -> AutomationAnswer:
    """Kill switch, requests by state, held storms, and success rates by cause and plan with their intervals."""
    return AutomationAnswer.model_validate(views.overview(services, views.tallies(services)), from_attributes=True)


@router.post("/automation:stop", responses=answers(401, 403, 422, 503))
def stop_automation(services: InjectedServices, body: Stop | None = None, principal: Principal = ACT) -> Switch:
    """Stop all automatic action immediately: no request is leased to a hook until automation is started again."""
    reason = body.reason if body is not None else None
    return services.automation.set_stopped(stopped=True, actor=principal.name, reason=reason)


@router.post("/automation:start", responses=answers(401, 403, 503))
def start_automation(services: InjectedServices, principal: Principal = ACT) -> Switch:
    """Start automatic action again; waiting requests that have not expired continue."""
    return services.automation.set_stopped(stopped=False, actor=principal.name)
