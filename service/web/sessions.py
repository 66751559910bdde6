"""Names and limits of session cookies. A random cookie identifies a session in the store."""

from datetime import timedelta
from typing import cast

from fastapi import Request

from service.web.services import Services

COOKIE = "faultline_session"
FORM_COOKIE = "faultline_form"
OIDC_COOKIE = "faultline_oidc"
# The browser sends and accepts such a cookie only over TLS, from and for this host (RFC 6265bis, section 4.1.3.2).
HOST_PREFIX = "__Host-"
LIFETIME = timedelta(hours=12)
IDLE = timedelta(hours=2)  # without a request


def is_secure(request: Request) -> bool:
    """Whether browsers reach this service by TLS, as FAULTLINE_PUBLIC_URL says."""
    return cast("Services", request.app.state.services).people.secure


def cookie_name(request: Request, name: str) -> str:
    """The name of a cookie as the browser knows it."""
    return f"{HOST_PREFIX}{name}" if is_secure(request) else name


def cookie(request: Request, name: str) -> str:
    """The value of a cookie; empty if there is none."""
    return request.cookies.get(cookie_name(request, name), "")
