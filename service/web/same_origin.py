"""Who may talk to a server without tokens: only pages of its own. Against DNS rebinding and forged requests; pure.

On loopback any page in the operator's browser can reach the port. The Host header tells a rebound name apart, the
Origin header (and Sec-Fetch-Site where the browser sends it) a request that another site's page makes.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from service.errors import FieldError, Forbidden

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def check_host(host: str | None) -> None:
    """Return where the Host header names this machine (any port: a tunnel may have another one).

    Raises:
        Forbidden: it names something else.
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
    """Return where a request that changes something comes from a page of ours, or from no page at all.

    A form of ours sends `Origin: null`, because our pages send no referrer; `from_form` allows that, and the caller
    checks the form's own token.

    Raises:
        Forbidden: another site's page made it.
    """
    origin, host = headers.get("origin"), headers.get("host", "")
    site = headers.get("sec-fetch-site")
    if site is not None and site not in {"same-origin", "none"}:
        raise _foreign(f"Sec-Fetch-Site {site}")
    if origin is None or (origin == "null" and from_form):
        return
    try:
        ours = urlsplit(origin).netloc.lower() == host.lower() and host != ""
    except ValueError:
        ours = False
    if not ours:
        raise _foreign(origin)


def _foreign(got: str) -> Forbidden:
    expected = "a request from a page of this server, or from a program"
    return Forbidden(f"Origin: expected {expected}", (FieldError("Origin", expected, got[:80]),))
