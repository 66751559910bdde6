"""Security middleware: Host check, security headers and the last error handler."""

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

from anyio import to_thread
from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden
from service.web.exception_handler import respond
from service.web.same_origin import check_host
from service.web.security_events import refused
from service.web.services import Services

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; script-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# Only where FAULTLINE_PUBLIC_URL has TLS: browsers then refuse plain HTTP for a year (RFC 6797).
STRICT_TRANSPORT_SECURITY = "max-age=31536000"
# Refused requests that are security events.
REFUSALS = {401: "request.unauthenticated", 403: "request.denied", 429: "request.limited"}


class SecurityMiddleware:
    """Wraps the whole application.

    Args:
        app: the wrapped application.
        services: the services of the application. On loopback, the Host of a request must name this machine.
    """

    def __init__(self, app: ASGIApp, *, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                refusal = REFUSALS.get(message["status"])
                if refusal is not None:
                    if hasattr(request.state, "identified"):  # it may be stored
                        await to_thread.run_sync(refused, self._services, refusal, request)
                    else:
                        refused(self._services, refusal, request)
                _add(message, secure=self._services.people.secure)
                if message["status"] == HTTPStatus.BAD_REQUEST:  # what follows may be a part of the same message
                    message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        request = Request(scope, receive)
        try:
            if self._services.loopback:
                check_host(Headers(scope=scope).get("host"))
            await self._app(scope, receive, send_secured)
        except Forbidden as error:
            await respond(request, error)(scope, receive, send_secured)
        except ClientDisconnect:
            return  # nobody is there to answer, and an upload that breaks off is no error of the service
        except Exception as error:
            if started:
                raise
            await respond(request, error)(scope, receive, send_secured)


def _add(message: MutableMapping[str, Any], *, secure: bool) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers[name] = value
    if secure:
        headers["Strict-Transport-Security"] = STRICT_TRANSPORT_SECURITY
    headers.setdefault("Cache-Control", "no-store")
