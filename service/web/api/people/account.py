"""Sessions and passwords: of the own account, and of any account for administrators."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from service.people.passwords import LONGEST
from service.people.records import SessionRow
from service.web import account_views
from service.web.auth import ADMIN, OWN, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices
from service.web.sessions import IDLE

router = APIRouter(tags=["account"])
SessionId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="the id of a session")]
# As long as the login form's, so that every password that can log in can be changed.
Password = Annotated[SecretStr, Field(max_length=1_000)]


class SessionsAnswer(BaseModel):
    """The sessions of an account that have not ended, newest login first; always one page."""

    items: list[SessionRow]
    next_cursor: None = None


class SessionsEnded(BaseModel):
    """The number of sessions that ended."""

    sessions_ended: int


class NewPassword(BaseModel):
    """The current password and the new one."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    current_password: Password
    new_password: Annotated[Password, Field(description=f"at most {LONGEST} characters, hard to guess")]


@router.get("/account/sessions", responses=answers(401, 403, 409, 503))
def get_account_sessions(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN]
) -> SessionsAnswer:
    """The sessions of the account that asks."""
    account = account_views.required_account(services, principal)
    return SessionsAnswer(items=list(account_views.sessions(request, services, principal, account)))


@router.delete("/account/sessions/{session_id}", status_code=204, responses=answers(400, 401, 403, 404, 409, 422, 503))
def end_account_session(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN], session_id: SessionId
) -> None:
    """End one session of the account that asks."""
    account_views.end_session(request, services, principal, session_id)


@router.post("/account/sessions:end-others", responses=answers(400, 401, 403, 409, 503))
def end_other_sessions(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN]
) -> SessionsEnded:
    """End all sessions of the account that asks, except the one of this request."""
    return SessionsEnded(sessions_ended=account_views.end_other_sessions(request, services, principal))


@router.post("/account:change-password", responses=answers(400, 401, 403, 409, 422, 429, 503))
def change_password(
    request: Request, services: InjectedServices, principal: Annotated[Principal, OWN], body: NewPassword
) -> SessionsEnded:
    """Change the password of the account that asks; its other sessions end."""
    ended = account_views.change_password(
        request,
        services,
        principal,
        current=body.current_password.get_secret_value(),
        new=body.new_password.get_secret_value(),
    )
    return SessionsEnded(sessions_ended=ended)


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
