"""The outermost layer: which Host is answered, what browsers are told never to do, and the last resort for errors."""

import logging
from collections.abc import MutableMapping
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Forbidden
from service.web.error_responses import respond
from service.web.same_origin import check_host

POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; script-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_log = logging.getLogger(__name__)


class SecurityMiddleware:
    """Wraps the whole application.

    Args:
        app: what is wrapped.
        loopback: whether only names of this machine are answered.
    """

    def __init__(self, app: ASGIApp, *, loopback: bool) -> None:
        self._app = app
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add(message)
            await send(message)

        request = Request(scope, receive)
        try:
            if self._loopback:
                check_host(Headers(scope=scope).get("host"))
            await self._app(scope, receive, guarded)
        except Forbidden as error:
            await respond(request, error)(scope, receive, guarded)
        except Exception as error:
            if started:
                raise
            await respond(request, error)(scope, receive, guarded)


def _add(message: MutableMapping[str, Any]) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in HEADERS.items():
        headers[name] = value
    headers.setdefault("Cache-Control", "no-store")
