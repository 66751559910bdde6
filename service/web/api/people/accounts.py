"""Sessions of any account, for administrators: GET /accounts/{name}/sessions, POST /accounts/{name}/sessions:end."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from service.web.api.people.account import SessionsAnswer, SessionsEnded
from service.web.auth import ADMIN, Principal
from service.web.error_responses import answers
from service.web.people import account_views
from service.web.services import InjectedServices
from service.web.sessions import IDLE

router = APIRouter(tags=["account"])
Name = Annotated[str, Path(max_length=200, description="the name of an account")]


@router.get("/accounts/{name:path}/sessions", dependencies=[ADMIN], responses=answers(401, 403, 404, 422, 503))
def get_sessions_of_account(services: InjectedServices, name: Name) -> SessionsAnswer:
    """The sessions of an account."""
    with services.reading() as reading:
        return SessionsAnswer(items=list(reading.sessions.of_account(reading.accounts.named(name).id, idle=IDLE)))


@router.post("/accounts/{name:path}/sessions:end", responses=answers(400, 401, 403, 404, 422, 503))
def end_sessions_of_account(
    request: Request, services: InjectedServices, principal: Annotated[Principal, ADMIN], name: Name
) -> SessionsEnded:
    """End all sessions of an account; the person has to log in again."""
    return SessionsEnded(sessions_ended=account_views.end_sessions_of(request, services, principal, name))
