"""Same-origin checks against DNS rebinding and cross-site request forgery. Pure.

On loopback any page in the operator's browser can reach the port. The Host header reveals DNS rebinding; the Origin
header (and Sec-Fetch-Site, if the browser sends it) reveals requests made by pages of other sites.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from service.errors import FieldError, Forbidden

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def check_host(host: str | None) -> None:
    """Check that the Host header names this machine. Any port is accepted, because a tunnel may use another one.

    Raises:
        Forbidden: the header names another host.
    """
    try:
        parts = urlsplit(f"//{host or ''}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        name = None
    if name not in LOCAL_NAMES or parts.username is not None or parts.path:
        expected = "localhost, 127.0.0.1 or [::1], with the port"
        raise Forbidden(f"Host: expected {expected}", (FieldError("Host", expected, (host or "")[:80]),))


def check_origin(headers: Mapping[str, str], *, from_form: bool = False) -> None:
    """Check that a request that changes data comes from a page of this server, or from a program.

    Forms of this server send `Origin: null`, because its pages send no referrer. `from_form` accepts that; the caller
    must then check the form token.

    Raises:
        Forbidden: a page of another site made the request.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    site = headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        raise _foreign(f"Sec-Fetch-Site {site}")
    if origin is None or (origin == "null" and from_form):
        return
    try:
        same = urlsplit(origin).netloc.lower() == host.lower() and host != ""
    except ValueError:
        same = False
    if not same:
        raise _foreign(origin)


def _foreign(got: str) -> Forbidden:
    expected = "a request from a page of this server, or from a program"
    return Forbidden(f"Origin: expected {expected}", (FieldError("Origin", expected, got[:80]),))
