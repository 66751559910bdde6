"""GET /login/oidc and /login/oidc/callback: a login at the organisation's identity provider."""

import hmac
import secrets
from hashlib import sha256
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from service.errors import Forbidden, InvalidInput, NotFound
from service.people.identity import log_in_identity
from service.people.login_limits import network_of
from service.people.login_methods import Provider
from service.web.pages.forms import Text
from service.web.pages.people.login import local_path, start_session
from service.web.pages.templating import render
from service.web.security_events import address_of, client_of
from service.web.services import InjectedServices, Services
from service.web.sessions import LIFETIME, OIDC_COOKIE, cookie, cookie_name, is_secure

router = APIRouter(prefix="/login/oidc")
MINUTES = 10


@router.get("")
def start(request: Request, services: InjectedServices, next: Text = None) -> RedirectResponse:  # noqa: A002 - the name in the URL
    """Redirect to the identity provider; the expected state is kept in an HttpOnly cookie."""
    login = _provider(services).start()
    response = RedirectResponse(login.url, 303)
    ends = services.clock.now().timestamp() + 60 * MINUTES
    cookie = _signed(services, orjson.dumps([login.state, login.nonce, login.verifier, local_path(next), ends]))
    # Lax: browsers do not send a strict cookie when the provider redirects back.
    response.set_cookie(
        cookie_name(request, OIDC_COOKIE),
        cookie,
        max_age=60 * MINUTES,
        path=_path(request),
        secure=is_secure(request) or request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


@router.get("/callback")
def callback(
    request: Request,
    services: InjectedServices,
    code: Annotated[str, Query(max_length=4_000)] = "",
    state: Annotated[str, Query(max_length=1_000)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> HTMLResponse:
    """Handle the redirect from the identity provider and start a session.

    Raises:
        Forbidden: the provider refused, the response belongs to another login, or the user has no role.
        InvalidInput: no login is in progress in this browser.
        TooManyRequests: too many logins from this address.
    """
    try:
        content = _verified(services, cookie(request, OIDC_COOKIE))
        wanted_state, nonce, verifier, wanted, ends = orjson.loads(content)
        if ends < services.clock.now().timestamp():
            raise ValueError("expired")  # noqa: TRY301 -- as any other unusable cookie
    except (ValueError, TypeError):  # not a cookie of this server
        raise InvalidInput("no login is in progress in this browser: start again at /login") from None
    if error or not code or not secrets.compare_digest(str(wanted_state).encode(), state.encode()):
        raise Forbidden(
            "the identity provider refused, or its response belongs to another login: start again at /login"
        )
    people = services.people
    network = network_of(address_of(request))
    services.action_limits.codes.check(network, "logins from your address in five minutes")
    with services.codes.one_of(network):
        claims = _provider(services).finish(code, nonce=str(nonce), verifier=str(verifier))
    with services.store.unit_of_work() as work:
        account = log_in_identity(work, "oidc", claims, people.claims, people.roles)
        session = work.sessions.log_in(account_id=account.id, lasts=LIFETIME, client=client_of(request))
    # A page instead of a redirect: browsers send a strict cookie only with navigation that starts on this site.
    response = start_session(
        request, services, session, render(request, "logged_in.html", {"next": local_path(str(wanted))})
    )
    response.delete_cookie(
        cookie_name(request, OIDC_COOKIE),
        path=_path(request),
        secure=is_secure(request),
        httponly=True,
        samesite="lax",
    )
    return response


def _signed(services: Services, content: bytes) -> str:
    return f"{content.hex()}.{hmac.new(services.people.state_key, content, sha256).hexdigest()}"


def _verified(services: Services, signed: str) -> bytes:
    """The content of a signed cookie.

    Raises:
        ValueError: it was not signed by this service.
    """
    text, _, mac = signed.partition(".")
    content = bytes.fromhex(text)
    if not hmac.compare_digest(hmac.new(services.people.state_key, content, sha256).hexdigest().encode(), mac.encode()):
        raise ValueError("not signed by this service")
    return content


def _path(request: Request) -> str:
    return "/" if is_secure(request) else "/login/oidc"  # a cookie with the prefix __Host- is for all paths


def _provider(services: Services) -> Provider:
    if services.people.provider is None:
        raise NotFound("no identity provider is configured (FAULTLINE_OIDC_ISSUER)")
    return services.people.provider
