"""Authentication and authorisation: bearer tokens, browser sessions, a trusted proxy, or open access on loopback."""

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Literal, get_args

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from service.errors import FieldError, Forbidden, NotFound, Unauthorized, Unavailable
from service.failures.records import Visibility
from service.people.api_tokens import Binding, binding_of, scopes_of_token, visible_to_token
from service.people.identity import log_in_identity, unchanged_account
from service.people.records import Scope, Token
from service.people.repository.accounts import Account
from service.people.roles import job_users, scopes_of, sees, visible_to
from service.sql.types import HIGHEST_ID
from service.web.error_responses import is_api_path
from service.web.same_origin import SAFE_METHODS, check_origin
from service.web.security_events import record_token_address
from service.web.services import InjectedServices, Services
from service.web.sessions import COOKIE, FORM_COOKIE, IDLE, cookie

PROXY_SECRET = "X-Faultline-Proxy-Secret"  # noqa: S105 - a header's name
_USE_RECORDED_EVERY = timedelta(minutes=1)
_INCLUDED_IN = {"own": "read", "hook": "act", "labels": "act", "publish": "act"}
_bearer = HTTPBearer(
    scheme_name="token",
    description="An API token: `faultline token create NAME --purpose ...`. Not needed on loopback where none exists.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller. `via` open: a loopback server without tokens, where every caller may do everything.

    `visible`: the failures the caller may see; None: all failures. `binding`: the clusters and teams of its token.
    `users`: the names under which its jobs run, each with its cluster (None: any), where they are known.
    """

    name: str
    scopes: frozenset[str]
    via: Literal["open", "bearer", "cookie", "proxy"]
    visible: Visibility | None = None
    binding: Binding = field(default_factory=Binding)
    token_id: int | None = None
    users: tuple[tuple[str | None, str], ...] = ()

    @property
    def views_owner(self) -> str:
        """Whom saved views belong to. No account has a name with a control character, so none is like a token."""
        return self.name if self.token_id is None else f"\x1ftoken/{self.token_id}"

    @property
    def sender(self) -> str:
        """By whom requests of the intake are counted."""
        return self.views_owner

    @property
    def account_name(self) -> str | None:
        """The name of the account; None for an API token and for a service without a login."""
        return self.name if self.token_id is None and self.via in {"cookie", "proxy"} else None

    def may(self, scope: str) -> bool:
        """Whether a scope is granted. `admin` includes all scopes; `read` and `act` include narrower ones."""
        return scope in self.scopes or "admin" in self.scopes or _INCLUDED_IN.get(scope) in self.scopes

    def owns(self, cluster: str, user: str | None) -> bool:
        """Whether a job runs under one of the caller's own names; being in its team is not enough."""
        return self.visible is not None and sees(Visibility(self.visible.users, ()), cluster, user, None)

    def require(self, scope: str) -> None:
        """Require a scope.

        Raises:
            Forbidden: the scope is not granted.
        """
        if not self.may(scope):
            got = ", ".join(sorted(self.scopes))
            if self.account_name is not None:
                wanted = FieldError("role", f"one with the scope {scope}", got)
                if scope == "read":
                    raise Forbidden("your account sees the failures of its own jobs or teams only", (wanted,))
                raise Forbidden(f"your role does not include the scope {scope}", (wanted,))
            expected = f"a token with the purpose {'read' if scope == 'own' else scope}"
            if scope == "read" and "own" in self.scopes:
                expected += " that is bound to no cluster or team"
            raise Forbidden(f"this needs {expected}", (FieldError("Authorization", expected, got),))


def authorise(
    request: Request,
    services: InjectedServices,
    wanted: SecurityScopes,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Principal:
    """Authenticate the caller and check the required scopes.

    Raises:
        Unauthorized: no token, or an unknown one.
        Forbidden: the caller lacks a scope or sees only a part of what this needs, or a page of another site made the
            request.
    """
    found = getattr(request.state, "identified", None)  # by the request gate
    bearer = credentials.credentials if credentials is not None else None
    principal: Principal = identify(request, services, bearer) if found is None else found
    if principal.via != "bearer" and request.method not in SAFE_METHODS:
        check_origin(request.headers, from_form=not is_api_path(request.url.path))
    request.state.principal = principal  # before the scopes, so that a refusal is a page with the caller's navigation
    for scope in wanted.scopes:
        principal.require(scope)
    if "act" in wanted.scopes and principal.visible is not None:
        _check_visible(request, services, principal.visible)
    if "hook" in wanted.scopes and principal.visible is not None and (not principal.binding or principal.binding.teams):
        raise Forbidden("a hook carries out the requests of all teams, and this caller may act on some of them only")
    if "publish" in wanted.scopes and principal.visible is not None:
        raise Forbidden("a report covers all clusters and teams, and this caller may not see all of them")
    return principal


def _check_visible(request: Request, services: Services, visible: Visibility) -> None:
    """Check that the target of the action is one failure that this principal may see.

    Raises:
        Forbidden: the target is not a single failure, or is not visible to the principal.
    """
    text = str(request.path_params.get("failure_id", ""))
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST_ID)) else 0
    if 0 < number <= HIGHEST_ID:
        with suppress(NotFound), services.reading() as reading:
            row = reading.failures.get(number).row
            if sees(visible, row.cluster, row.user, row.team):
                return
    raise Forbidden("this account or token may act only on failures of its own clusters and teams")


def identify(request: Request, services: Services, bearer: str | None) -> Principal:
    """Authenticate the caller without checking scopes.

    Raises:
        Unauthorized: no token, or an unknown one.
    """
    if bearer is not None:
        token = find_token(services, bearer)
        if token is None:
            raise Unauthorized(
                "the token is unknown or has been revoked", (FieldError("Authorization", "Bearer and a valid token"),)
            )
        record_token_address(services, request, token.name)
        return _token_principal(token, "bearer")
    proxied = proxy_account(request, services)
    if proxied is not None:
        return _account_principal(proxied, "proxy")
    session = cookie(request, COOKIE)
    # A page asks for live updates by itself, whether or not somebody looks at it: they are no use of a session.
    by_person = not request.url.path.endswith("/live")
    found = session_owner(services, session, used=by_person) if session else None
    if isinstance(found, Account):
        return _account_principal(found, "cookie")
    if found is not None:
        return _token_principal(found, "cookie")
    if not tokens_required(services):
        if services.sole_person is not None:
            return _account_principal(services.sole_person, "open")
        return Principal("this machine", frozenset(get_args(Scope)), "open")
    raise Unauthorized("this needs an API token", (FieldError("Authorization", "Bearer and a valid token"),))


def bearer_of(request: Request) -> str | None:
    """The token of the Authorization header; None without one."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


def tokens_required(services: Services) -> bool:
    """Whether authentication is required: always beyond loopback; on loopback once a token or an account exists."""
    if not services.loopback or services.people.logins:
        return True
    with services.reading() as reading:
        return reading.tokens.any() or reading.accounts.any()


def session_owner(services: Services, session: str, *, used: bool = True) -> Account | Token | None:
    """The account or token of a session cookie; None if the session or its owner no longer exists.

    The time of use is recorded at most once a minute, if `used`.
    """
    with services.reading() as reading:
        found = reading.sessions.owner(session, idle=IDLE)
        owner = reading.tokens.get(found) if isinstance(found, int) else found
        used_at = None if owner is None or not used else reading.sessions.last_used_at(session)
    if used_at is not None and services.clock.now() - used_at >= _USE_RECORDED_EVERY:
        with suppress(Unavailable), services.store.unit_of_work() as work:  # a busy database must not block readers
            work.sessions.use(session)
    return owner


def proxy_account(request: Request, services: Services) -> Account | None:
    """The account that a trusted proxy authenticated; None without a proxy, or for a request that bypassed it.

    Raises:
        Forbidden: the authenticated user has no role here, or the proxy passes headers of clients on.
    """
    proxy = services.people.proxy
    if proxy is None:
        return None
    secret = request.headers.get(PROXY_SECRET, "")
    if not secrets.compare_digest(secret.encode(), proxy.secret.encode()):
        return None
    claims = {
        name: _only(request, name) for name in (proxy.claims.user, proxy.claims.groups, proxy.claims.teams) if name
    }
    with services.reading() as reading:  # a busy database must not block readers
        known = unchanged_account(reading.accounts, "proxy", claims, proxy.claims, services.people.roles)
    if known is not None:
        return known
    with services.store.unit_of_work() as work:
        return log_in_identity(work, "proxy", claims, proxy.claims, services.people.roles)


def _only(request: Request, name: str) -> str | None:
    """A header that the proxy sets.

    Raises:
        Forbidden: there are several: the proxy has added its own to one of the client.
    """
    values = request.headers.getlist(name)
    if len(values) > 1:
        expected = "one header, as the proxy removes those of clients"
        raise Forbidden(f"{name}: expected {expected}", (FieldError(name, expected, f"{len(values)} headers"),))
    return values[0] if values else None


def _account_principal(account: Account, via: Literal["cookie", "proxy", "open"]) -> Principal:
    return Principal(account.name, scopes_of(account), via, visible_to(account), users=job_users(account))


def _token_principal(token: Token, via: Literal["bearer", "cookie"]) -> Principal:
    return Principal(token.name, scopes_of_token(token), via, visible_to_token(token), binding_of(token), token.id)


def find_token(services: Services, secret: str) -> Token | None:
    """The token with this secret; the time of use is recorded at most once a minute."""
    with services.reading() as reading:
        token = reading.tokens.find(secret)
    if token is None:
        return None
    now = services.clock.now()
    if token.last_used_at is None or now - token.last_used_at >= _USE_RECORDED_EVERY:
        with suppress(Unavailable), services.store.unit_of_work() as work:  # a busy database must not block readers
            work.tokens.used(token)
    return token


def check_form(request: Request, given: str) -> None:
    """Check that a form was rendered by this server for this browser.

    Raises:
        Forbidden: the form token does not match, or the browser rejects cookies.
    """
    check_origin(request.headers, from_form=True)
    expected = cookie(request, FORM_COOKIE)
    if not expected or not secrets.compare_digest(expected.encode(), given.encode()):
        raise Forbidden("the form has expired or was not created by this server: reload the page and try again")


INGEST = Security(authorise, scopes=["ingest"])
READ = Security(authorise, scopes=["read"])
OWN = Security(authorise, scopes=["own"])  # limited to what the principal may see
HOOK = Security(authorise, scopes=["hook"])
LABELS = Security(authorise, scopes=["labels"])
PUBLISH = Security(authorise, scopes=["publish"])
ACT = Security(authorise, scopes=["act"])
ADMIN = Security(authorise, scopes=["admin"])


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action requested by an authorised principal. `services` is limited to the failures this principal may see."""

    services: Services
    principal: Principal
    comment: str | None = None

    @property
    def actor(self) -> str:
        """The name of the principal, as stored in records."""
        return self.principal.name
