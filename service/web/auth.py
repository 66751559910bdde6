"""Who asks, and whether they may: API tokens as Bearer or as a logged-in browser; nobody at all on a bare loopback."""

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, cast, get_args

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from service.errors import FieldError, Forbidden, Unauthorized, Unavailable
from service.store.records import Scope, Token
from service.web.origin import SAFE_METHODS, check_origin
from service.web.problems import for_programs
from service.web.services import Given, Services
from service.web.sessions import COOKIE, FORM_COOKIE, Sessions

_USE_NOTED_EVERY = timedelta(minutes=1)
_bearer = HTTPBearer(
    scheme_name="token",
    description="An API token: `faultline token create NAME --scope ...`. Not needed on loopback where none exists.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `via` open: a loopback server without tokens, where whoever reaches it may do everything."""

    name: str
    scopes: frozenset[str]
    via: Literal["open", "bearer", "cookie"]

    def may(self, scope: str) -> bool:
        """Whether a scope is granted; admin may do everything."""
        return scope in self.scopes or "admin" in self.scopes


def authorise(
    request: Request,
    services: Given,
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
        check_origin(request.headers, from_form=not for_programs(request.url.path))
    for scope in wanted.scopes:
        if not principal.may(scope):
            expected = f"a token with scope {scope}"
            got = ", ".join(sorted(principal.scopes))
            raise Forbidden(f"this needs {expected}", (FieldError("Authorization", expected, got),))
    request.state.principal = principal
    return principal


def identify(request: Request, services: Services, bearer: str | None) -> Principal:
    """Who asks, whatever they may.

    Raises:
        Unauthorized: no token, or none that is known.
    """
    if bearer is not None:
        token = find(services, bearer)
        if token is None:
            raise Unauthorized(
                "the token is not known, or was revoked", (FieldError("Authorization", "Bearer and a token in force"),)
            )
        return Principal(token.name, token.scopes, "bearer")
    secret = cast("Sessions", request.app.state.sessions).secret(request.cookies.get(COOKIE, ""))
    token = find(services, secret) if secret is not None else None
    if token is not None:
        return Principal(token.name, token.scopes, "cookie")
    if not tokens_required(services):
        return Principal("this machine", frozenset(get_args(Scope)), "open")
    raise Unauthorized("this needs an API token", (FieldError("Authorization", "Bearer and a token in force"),))


def tokens_required(services: Services) -> bool:
    """Whether a token must be shown: always beyond loopback, and on loopback as soon as one exists."""
    if not services.loopback:
        return True
    with services.store.reading() as reading:
        return reading.tokens.any()


def find(services: Services, secret: str) -> Token | None:
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
ACT = Security(authorise, scopes=["act"])
ADMIN = Security(authorise, scopes=["admin"])
