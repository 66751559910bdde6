"""GET /automation and the kill switch: what is done by itself, how it ended, and stopping all of it."""

from fastapi import APIRouter

from service.requests.records import Switch
from service.web import automation_views as views
from service.web.api.automation_models import AutomationAnswer, Stop
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["automation"])


@router.get("/automation", dependencies=[READ], responses=answers(401, 403, 503))
def get_automation(services: InjectedServices) -> AutomationAnswer:
    """The switch, the requests by state, storms, and the success of each cause and plan with its interval."""
    return AutomationAnswer.model_validate(views.overview(services), from_attributes=True)


@router.post("/automation:stop", responses=answers(401, 403, 422, 503))
def stop_automation(services: InjectedServices, body: Stop | None = None, principal: Principal = ACT) -> Switch:
    """Stop all automatic action at once: from now on nothing is leased to any hook, whatever waits."""
    return views.stop(services, principal.name, body.reason if body is not None else None)


@router.post("/automation:start", responses=answers(401, 403, 503))
def start_automation(services: InjectedServices, principal: Principal = ACT) -> Switch:
    """Let automatic action go on; what waited and has not expired goes on too."""
    return views.start(services, principal.name)
