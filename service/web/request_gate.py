"""Checks before a request reaches the application: its origin, the caller's identity, and the size of its body.

The framework reads the body of a request before it asks who sends it. This layer is in front of it, so that nothing
of a body is read for a caller who is not authenticated, and never more than the limit of the route.

Behind it, a HEAD request becomes a GET request, the only one of the two that the routes know.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from anyio import CancelScope, to_thread
from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import AmbiguousMessage, FieldError, Forbidden, TimedOut, TooLarge
from service.web.auth import Principal, bearer_of, identify, tokens_required
from service.web.body_redaction import UNCHANGED_PATHS, without_secrets
from service.web.same_origin import SAFE_METHODS
from service.web.services import Services

API_PREFIX = "/api/v1"
# Routes that answer without a login. They contain no data of jobs.
PUBLIC = frozenset({"/login", "/login/oidc", "/login/oidc/callback", "/favicon.ico", f"{API_PREFIX}/openapi.json"}) | {
    f"{prefix}/health/{probe}" for prefix in ("", API_PREFIX) for probe in ("live", "ready")
}
STATIC = "/static/"
UNSUBSCRIBE = "/unsubscribe/"  # the rest of the path is a secret that the receiver of a report has
# Routes that read their body in pieces, with their own limit (service.web.limits.request_body).
STREAMED = frozenset({f"{API_PREFIX}/events", f"{API_PREFIX}/node-events", f"{API_PREFIX}/labels"})
PUBLIC_BODY_BYTES = 64 * 1024
BODY_BYTES = 1024 * 1024
STREAMED_BODY_BYTES = 64 * 1024 * 1024
BODY_S = 30.0  # for a whole body, or between two pieces of a streamed one
STREAMED_BODY_S = 300.0  # for a whole streamed body
# A proxy adds these headers. Without a login, only programs and browsers of this machine may use the service.
FORWARDING = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"}) | {
    *("x-cluster-client-ip", "x-original-forwarded-for", "x-original-host", "x-envoy-external-address", "cdn-loop"),
    *("fastly-client-ip", "fly-client-ip", "x-azure-clientip", "x-appengine-user-ip", "x-amz-cf-id", "x-arr-ssl"),
}
FORWARDING_PREFIX = "x-forwarded-"


@dataclass(frozen=True, slots=True)
class RouteClass:
    """What a route accepts before its code runs: anonymous callers, and a body of at most `limit` bytes."""

    public: bool
    streamed: bool
    limit: int


_PUBLIC = RouteClass(public=True, streamed=False, limit=PUBLIC_BODY_BYTES)
_STREAMED = RouteClass(public=False, streamed=True, limit=STREAMED_BODY_BYTES)
_OTHER = RouteClass(public=False, streamed=False, limit=BODY_BYTES)


def route_class(path: str) -> RouteClass:
    """The class of a path. A path that is not listed needs a login, and its body is at most 1 MiB."""
    if path in PUBLIC or path.startswith((STATIC, UNSUBSCRIBE)):
        return _PUBLIC
    return _STREAMED if path in STREAMED else _OTHER


def is_forwarded(headers: Mapping[str, str]) -> bool:
    """Whether a request says that it came through a proxy."""
    return any(name in FORWARDING or name.startswith(FORWARDING_PREFIX) for name in headers)


def _may_be_forwarded(request: Request) -> bool:
    """Whether it says so, or has the protocol that nginx uses by default, which adds no header."""
    return is_forwarded(request.headers) or request.scope.get("http_version") == "1.0"


class RequestGate:
    """Wraps the application. The identity is stored in the request's state for `service.web.auth.authorise`.

    Args:
        app: the wrapped application.
        services: the services of the application.
        body_s: seconds for a whole body, or between two pieces of a streamed one.
    """

    def __init__(self, app: ASGIApp, *, services: Services, body_s: float = BODY_S) -> None:
        self._app = app
        self._services = services
        self._body_s = body_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection.

        Raises:
            AmbiguousMessage: the length of the body is given in two ways.
            Unauthorized: no valid login; nothing of the body was read.
            Forbidden: the service has no login, and the request came through a proxy.
            TooManyRequests: the caller reached the limit of the intake or of changes.
            TooLarge: the body is larger than the route accepts.
            TimedOut: the body did not arrive in time.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        _check_framing(request)
        kind = route_class(request.url.path)
        principal = None
        if not (kind.public and self._answers_everybody(request)):
            principal = await to_thread.run_sync(self._identified, request, kind)
        if principal is not None:
            request.state.identified = principal
        _check_length(request, kind.limit)
        if kind.streamed:
            await self._app(scope, _limited(receive, kind.limit, self._body_s), send)
            return
        messages = await _read(receive, kind.limit, self._body_s)
        if request.url.path not in UNCHANGED_PATHS and messages[0].get("body"):
            content_type = request.headers.get("content-type", "")
            messages[0]["body"] = await to_thread.run_sync(without_secrets, messages[0]["body"], content_type)
        await self._app(scope, _replayed(messages, receive), send)

    def _answers_everybody(self, request: Request) -> bool:
        """Whether nothing has to be looked up for a public route, which also answers while all threads work."""
        has_login = not self._services.loopback or self._services.people.logins
        return has_login or not _may_be_forwarded(request)

    def _identified(self, request: Request, kind: RouteClass) -> Principal | None:
        if _may_be_forwarded(request) and not tokens_required(self._services):
            expected = "HTTP/1.1 and no header of a proxy, because this service has no token and no account yet"
            raise Forbidden(
                "a service without a login answers requests of its own machine only: create a token first "
                "(faultline token create NAME --purpose admin)",
                (FieldError("X-Forwarded-For", expected),),
            )
        if kind.public:
            return None
        principal = identify(request, self._services, bearer_of(request))
        if request.method not in SAFE_METHODS and principal.via != "open":  # who uses that one has no name to count by
            self._check_rate(principal, kind)
        return principal

    def _check_rate(self, principal: Principal, kind: RouteClass) -> None:
        """Count a request of the intake, or one that changes something by a caller who neither operates nor is a hook.

        Raises:
            TooManyRequests: the limit is reached.
        """
        if kind.streamed:
            what = "requests with events, node events or labels in a minute"
            self._services.intake_limit.check(principal.sender, what)
        elif not principal.may("hook"):  # `act` includes it
            self._services.action_limits.changes.check(principal.sender, "changes of yours in a minute")


class HeadRequests:
    """Wraps the application: HEAD is answered as GET is, without the body (RFC 9110, section 9.3.2).

    Args:
        app: the wrapped application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection. A streamed response ends with its header, since it may have no end of its own."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        answered = CancelScope()

        async def send_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
            elif not answered.cancel_called:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                if message.get("more_body", False):
                    answered.cancel()

        with answered:
            await self._app({**scope, "method": "GET"}, receive, send_header)


def _check_framing(request: Request) -> None:
    """Refuse a body with two lengths: a proxy may have used the other one (RFC 9112, section 6.3)."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        expected = "either Content-Length or Transfer-Encoding"
        raise AmbiguousMessage(f"the body: expected {expected}", (FieldError("Transfer-Encoding", expected),))


def _check_length(request: Request, limit: int) -> None:
    given = request.headers.get("content-length", "")
    if given.isascii() and given.isdigit() and int(given[:20]) > limit:
        raise too_large(limit)


def too_large(limit: int) -> TooLarge:
    """The error of a body over a limit in bytes."""
    expected = f"at most {limit} bytes"
    return TooLarge(f"the body: expected {expected}", (FieldError("(body)", expected),))


async def _read(receive: Receive, limit: int, seconds: float) -> list[Message]:
    """The messages of a whole body: one of the body, or one of the end of the connection."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return [message]
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_large(limit)
                if not message.get("more_body", False):
                    return [{"type": "http.request", "body": bytes(body), "more_body": False}]
    except TimeoutError:
        raise _timed_out(seconds) from None


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """A `receive` that first gives the messages that were read already."""

    async def replayed() -> Message:
        return messages.pop(0) if messages else await receive()

    return replayed


def _limited(receive: Receive, limit: int, seconds: float) -> Receive:
    """A `receive` that counts the bytes of a body and waits a limited time for each piece."""
    taken, more = 0, True
    ends = asyncio.get_running_loop().time() + STREAMED_BODY_S

    async def limited() -> Message:
        nonlocal taken, more
        if not more:
            return await receive()  # waits for the end of the connection
        try:
            async with asyncio.timeout(min(seconds, ends - asyncio.get_running_loop().time())):
                message = await receive()
        except TimeoutError:
            raise _timed_out(seconds) from None
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            more = message.get("more_body", False)
            if taken > limit:
                raise too_large(limit)
        return message

    return limited


def _timed_out(seconds: float) -> TimedOut:
    return TimedOut(f"the body did not arrive within {seconds:g} seconds")
