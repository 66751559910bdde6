"""Who asks, and whether they may: API tokens as Bearer or as a logged-in browser; nobody at all on a bare loopback."""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, get_args

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from service.errors import FieldError, Forbidden, NotFound, Unauthorized, Unavailable
from service.failures.records import Visibility
from service.people.identity import log_in_identity, unchanged_account
from service.people.records import Scope, Token
from service.people.repository.accounts import Account
from service.people.roles import scopes_of, sees, visible_to
from service.web.error_responses import is_api_path
from service.web.same_origin import SAFE_METHODS, check_origin
from service.web.services import InjectedServices, Services
from service.web.sessions import COOKIE, FORM_COOKIE

PROXY_SECRET = "X-Faultline-Proxy-Secret"  # noqa: S105 - a header's name
_USE_NOTED_EVERY = timedelta(minutes=1)
_bearer = HTTPBearer(
    scheme_name="token",
    description="An API token: `faultline token create NAME --scope ...`. Not needed on loopback where none exists.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `via` open: a loopback server without tokens, where whoever reaches it may do everything.

    `visible`: whose failures they see; None: everybody's.
    """

    name: str
    scopes: frozenset[str]
    via: Literal["open", "bearer", "cookie", "proxy"]
    visible: Visibility | None = None

    def may(self, scope: str) -> bool:
        """Whether a scope is granted; admin may do everything, and who reads everything reads their own."""
        return scope in self.scopes or "admin" in self.scopes or (scope == "own" and "read" in self.scopes)

    def require(self, scope: str) -> None:
        """Return where a scope is granted.

        Raises:
            Forbidden: it is not.
        """
        if not self.may(scope):
            expected = f"a token with scope {scope}"
            got = ", ".join(sorted(self.scopes))
            raise Forbidden(f"this needs {expected}", (FieldError("Authorization", expected, got),))


def authorise(
    request: Request,
    services: InjectedServices,
    wanted: SecurityScopes,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Principal:
    """Who asks, if they may.

    Raises:
        Unauthorized: no token, or none that is known.
        Forbidden: the token lacks a scope, or another site's page made the request.
    """
    principal = identify(request, services, credentials.credentials if credentials is not None else None)
    if principal.via != "bearer" and request.method not in SAFE_METHODS:
        check_origin(request.headers, from_form=not is_api_path(request.url.path))
    for scope in wanted.scopes:
        principal.require(scope)
    if "act" in wanted.scopes and principal.visible is not None:
        _check_visible(request, services, principal.visible)
    request.state.principal = principal
    return principal


def _check_visible(request: Request, services: Services, visible: Visibility) -> None:
    """Return where what is acted on is a failure that a principal failure_query to some teams may see.

    Raises:
        Forbidden: it is no single failure, or not one of theirs.
    """
    number = str(request.path_params.get("failure_id", ""))
    if number.isascii() and number.isdigit() and int(number) < 2**63:
        with suppress(NotFound), services.store.reading() as reading:
            row = reading.failures.get(int(number)).row
            if sees(visible, row.cluster, row.user, row.team):
                return
    raise Forbidden("this account automation_service on the failures of its own teams only")


def identify(request: Request, services: Services, bearer: str | None) -> Principal:
    """Who asks, whatever they may.

    Raises:
        Unauthorized: no token, or none that is known.
    """
    if bearer is not None:
        token = find_token(services, bearer)
        if token is None:
            raise Unauthorized(
                "the token is not known, or was revoked", (FieldError("Authorization", "Bearer and a token in force"),)
            )
        return Principal(token.name, token.scopes, "bearer")
    vouched = proxy_account(request, services)
    if vouched is not None:
        return _account_principal(vouched, "proxy")
    cookie = request.cookies.get(COOKIE)
    found = session_owner(services, cookie) if cookie else None
    if isinstance(found, Account):
        return _account_principal(found, "cookie")
    if found is not None:
        return Principal(found.name, found.scopes, "cookie")
    if not tokens_required(services):
        return Principal("this machine", frozenset(get_args(Scope)), "open")
    raise Unauthorized("this needs an API token", (FieldError("Authorization", "Bearer and a token in force"),))


def tokens_required(services: Services) -> bool:
    """Whether a token or a login is needed: always beyond loopback, and there as soon as a token or account exists."""
    if not services.loopback or services.people.logins:
        return True
    with services.store.reading() as reading:
        return reading.tokens.any() or reading.accounts.any()


def session_owner(services: Services, cookie: str) -> Account | Token | None:
    """Who is logged in by this cookie; None where the session ended, or what it stands for."""
    with services.store.reading() as reading:
        found = reading.accounts.session(cookie)
        return reading.tokens.get(found) if isinstance(found, int) else found


def proxy_account(request: Request, services: Services) -> Account | None:
    """Whom a trusted proxy in front vouches for; None where none is configured, or the request did not come through it.

    Raises:
        Forbidden: it vouches for somebody who may not come in.
    """
    proxy = services.people.proxy
    if proxy is None:
        return None
    shown = request.headers.get(PROXY_SECRET, "")
    if not secrets.compare_digest(shown.encode(), proxy.secret.encode()):
        return None
    claims = {name: request.headers.get(name) for name in (proxy.claims.user, proxy.claims.groups)}
    if proxy.claims.teams is not None:
        claims[proxy.claims.teams] = request.headers.get(proxy.claims.teams)
    with services.store.reading() as reading:  # a busy database must not refuse a reader
        known = unchanged_account(reading.accounts, "proxy", claims, proxy.claims, services.people.roles)
    if known is not None:
        return known
    with services.store.unit_of_work() as work:
        return log_in_identity(work, "proxy", claims, proxy.claims, services.people.roles)


def _account_principal(account: Account, via: Literal["cookie", "proxy"]) -> Principal:
    return Principal(account.name, scopes_of(account), via, visible_to(account))


def find_token(services: Services, secret: str) -> Token | None:
    """The token with this secret; its use is remembered, to the minute."""
    with services.store.reading() as reading:
        token = reading.tokens.find(secret)
    if token is None:
        return None
    now = services.clock.now()
    if token.last_used_at is None or now - token.last_used_at >= _USE_NOTED_EVERY:
        with suppress(Unavailable), services.store.unit_of_work() as work:  # a busy database must not refuse a reader
            work.tokens.used(token)
    return token


def check_form(request: Request, given: str) -> None:
    """Return where a form was made by a page of ours for this browser.

    Raises:
        Forbidden: it was not, or the browser takes no cookies.
    """
    check_origin(request.headers, from_form=True)
    expected = request.cookies.get(FORM_COOKIE, "")
    if not expected or not secrets.compare_digest(expected.encode(), given.encode()):
        raise Forbidden("the form is too old or was not made by this server: load the page again and repeat")


INGEST = Security(authorise, scopes=["ingest"])
READ = Security(authorise, scopes=["read"])
OWN = Security(authorise, scopes=["own"])  # failure_query to what the principal sees
ACT = Security(authorise, scopes=["act"])
ADMIN = Security(authorise, scopes=["admin"])
