"""GET and POST /login, POST /logout: sessions by name and password, or by API token."""

from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import Unavailable
from service.people import one_time_codes, passwords
from service.people.login_limits import RETRY_AFTER_S, LoginAttempts
from service.people.records import Token
from service.people.repository.accounts import Account
from service.web.auth import check_form, find_token, session_owner, tokens_required
from service.web.pages.forms import FormToken, Text, redirect
from service.web.pages.templating import render, set_cookie
from service.web.security_events import address_of, client_of, notice, record
from service.web.services import InjectedServices, Services
from service.web.sessions import COOKIE, LIFETIME, cookie, cookie_name, is_secure

router = APIRouter()
_Answer = TypeVar("_Answer", RedirectResponse, HTMLResponse)


@router.get("/login")
def login(request: Request, services: InjectedServices, next: Text = None) -> HTMLResponse:  # noqa: A002 - the name in the URL
    """The login form."""
    return _form(request, services, local_path(next))


@router.post("/login", response_model=None)
def log_in(
    request: Request,
    services: InjectedServices,
    token: Annotated[str, Form(max_length=1_000)] = "",
    name: Annotated[str, Form(max_length=200)] = "",
    password: Annotated[str, Form(max_length=1_000)] = "",
    code: Annotated[str, Form(max_length=20)] = "",
    form_token: FormToken = "",
    next: Annotated[str, Form(max_length=2_000)] = "/",  # noqa: A002 - the name in the form
) -> HTMLResponse | RedirectResponse:
    """Check the credentials, start a session and redirect to the requested page."""
    check_form(request, form_token)
    address, name = address_of(request), name.strip()
    attempts = LoginAttempts(services.store)
    attempt = attempts.start(address, "" if token.strip() else name)
    if attempt is None:
        notice(services, "login.limited", request, name=name)
        return _form(request, services, local_path(next), "too_many", 429)
    succeeded: bool | None = False
    wrong: Literal["token", "password", "code"] = "token" if token.strip() else "password"
    session: str | None = None
    try:
        secret = token.strip()
        session = (
            _by_token(request, services, secret) if secret else _by_password(request, services, name, password, code)
        )
        succeeded = session is not None
    except Unavailable:
        succeeded = None
        raise
    except _WrongCode:
        wrong = "code"
    finally:
        attempts.finish(attempt, succeeded=succeeded, wrong_code=wrong == "code")
    if session is None:
        notice(services, "login.failed", request, name=name, by=wrong)
        return _form(request, services, local_path(next), "token" if token.strip() else "password", 401)
    return start_session(request, services, session, redirect(local_path(next)))


@router.post("/logout")
def log_out(
    request: Request,
    services: InjectedServices,
    form_token: FormToken = "",
    everywhere: Annotated[bool, Form()] = False,  # noqa: FBT002 - a field of the form
) -> RedirectResponse:
    """End the session, or all sessions of the person or API token."""
    check_form(request, form_token)
    session = cookie(request, COOKIE)
    owner = session_owner(services, session) if everywhere and session else None
    with services.store.unit_of_work() as work:
        ended = 0
        if owner is not None:
            end_all = work.sessions.end_all if isinstance(owner, Account) else work.sessions.end_all_of_token
            ended = end_all(owner.id)
        work.sessions.log_out(session)
    if owner is not None:
        record(services, "sessions.ended", request, owner.name, _name_of(owner), sessions=ended)
    response = redirect("/login")
    if is_secure(request):  # browsers ignore it without TLS
        response.headers["Clear-Site-Data"] = '"cache", "cookies", "storage"'
    response.delete_cookie(
        cookie_name(request, COOKIE), path="/", secure=is_secure(request), httponly=True, samesite="strict"
    )
    return response


def start_session(request: Request, services: Services, session: str, response: _Answer) -> _Answer:
    """Set the cookie of a new session on a response and end the old session of the browser.

    Raises:
        TooManyRequests: its account or token has logged in many times in the last minutes.
    """
    owner = session_owner(services, session)
    if owner is not None:
        whose = _name_of(owner)
        with services.store.unit_of_work() as work:
            services.action_limits.logins.count(work, whose, "logins in five minutes")
            work.sessions.log_out(cookie(request, COOKIE))
        record(services, "login", request, owner.name, whose)
    set_cookie(request, response, COOKIE, session, seconds=int(LIFETIME.total_seconds()))
    return response


def _name_of(owner: Account | Token) -> str:
    """Whose session it is, as in the audit log."""
    return f"{'account' if isinstance(owner, Account) else 'token'}/{owner.name}"


def local_path(where: str | None) -> str:
    """The requested path if it is a path of this server, otherwise "/"."""
    wanted = where or "/"
    if not wanted.startswith("/") or wanted.startswith("//") or "\\" in wanted or not wanted.isprintable():
        return "/"
    parts = urlsplit(wanted)
    return wanted if not parts.scheme and not parts.netloc else "/"


def _by_token(request: Request, services: Services, secret: str) -> str | None:
    token = find_token(services, secret)
    if token is None:
        return None
    with services.store.unit_of_work() as work:
        return work.sessions.log_in(token_id=token.id, lasts=LIFETIME, client=client_of(request))


class _WrongCode(Exception):
    """The password is right, and the one-time code is not. The answer is the same as to a wrong password."""


def _by_password(request: Request, services: Services, name: str, password: str, code: str) -> str | None:
    """The secret of a new session; None if the password is wrong, or the account may not log in with it.

    Raises:
        _WrongCode: see there.
        Unavailable: too many passwords are being checked, or the database does not answer.
    """
    with services.reading() as reading:
        known = reading.accounts.credentials(name)
    if not passwords.verify(None if known is None else known.password, password) or known is None:
        return None
    step = None
    if known.totp_secret is None and services.people.one_time_codes_required:
        return None
    if known.totp_secret is not None:
        step = one_time_codes.matching_step(known.totp_secret, code, services.clock.now())
        if step is None and code.strip():
            raise _WrongCode
        if step is None:
            return None
    with services.store.unit_of_work() as work:
        if not work.accounts.confirm(known):
            return None
        if step is not None and not work.accounts.use_code(known.account_id, step):
            raise _WrongCode
        return work.sessions.log_in(account_id=known.account_id, lasts=LIFETIME, client=client_of(request))


def _form(
    request: Request, services: Services, wanted: str, wrong: str | None = None, status: int = 200
) -> HTMLResponse:
    with services.reading() as reading:
        local = reading.accounts.any_local()
    context = {
        "next": wanted,
        "wrong": wrong,
        "needed": wrong is not None or tokens_required(services),
        "local": local,
        "provider": services.people.provider is not None,
    }
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 429 else None  # noqa: PLR2004 - too many requests
    return render(request, "login.html", context, status=status, headers=headers)
