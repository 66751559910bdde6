"""The HTTP client for the service's own API, used by hooks and watchers.

JSON over HTTP or HTTPS, without redirects or proxies, with answers of bounded size. The token is read again for each
request, so that it can be changed without a restart; it is in no message and no log line.
"""

import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore2

MAX_ANSWER_BYTES = 16 << 20
MAX_DETAIL_CHARACTERS = 300
"""Hosts to which a token may go over plain HTTP."""
_OK, _NOT_OK = 200, 300


class ApiUnreachable(Exception):
    """The service did not answer in time, or its answer is too large."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """One answer. `body` is the decoded JSON, or None if it is not JSON; header names are in lower case."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return _OK <= self.status < _NOT_OK

    @property
    def detail(self) -> str | None:
        """The problem's description (RFC 9457), shortened."""
        found = self.body.get("detail") if isinstance(self.body, Mapping) else None
        return str(found)[:MAX_DETAIL_CHARACTERS] if found else None


class ApiClient:
    """A connection pool to one service.

    Args:
        url: address of the service, such as https://faultline.example/ (a path before /api is kept).
        token: returns the API token; None: no token is sent.
        user_agent: name of the program.
        tls: trusted certificates and client certificate; None: the system's.
        timeout_s: limit in seconds for each step of a request, and for the whole answer.
        max_answer_bytes: largest answer that is read.
        monotonic: the clock for the limit of the whole answer.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Callable[[], str] | None,
        user_agent: str,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = 15.0,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base = url.rstrip("/") + "/api/v1"
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._token = token
        self._user_agent = user_agent
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._monotonic = monotonic
        self._pool = httpcore2.ConnectionPool(
            ssl_context=tls or ssl.create_default_context(), max_connections=2, http2=False
        )

    def request(
        self, method: str, path: str, content: bytes | None = None, content_type: str = "application/json"
    ) -> ApiResponse:
        """Send one request; `path` is relative to /api/v1.

        Raises:
            ApiUnreachable: there is no complete answer.
        """
        headers = {"content-type": content_type, "accept": "application/json", "user-agent": self._user_agent}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token()}"
        steps = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_s)
        deadline = self._monotonic() + self._timeout_s
        body = bytearray()
        try:
            with self._pool.stream(
                method,
                self._base + path,
                headers=list(headers.items()),
                content=content,
                extensions={"timeout": steps},
            ) as response:
                for part in response.iter_stream():
                    body += part
                    if len(body) > self._max_answer_bytes or self._monotonic() > deadline:
                        raise ApiUnreachable(f"{self.host}: the answer is too large or too slow")
        except httpcore2.TimeoutException:
            raise ApiUnreachable(f"no answer from {self.host} within {self._timeout_s:g} s") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise ApiUnreachable(f"{self.host}: {type(error).__name__} {error}"[:300]) from None
        decoded = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in response.headers}
        return ApiResponse(response.status, _json(bytes(body)), decoded)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def address_of(url: str) -> SplitResult | None:
    """The parts of an address of HTTP with a host and a possible port; None for anything else."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # brackets without an address in them, or a port that is none
        return None
    return parts if usable else None


def _json(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except (ValueError, RecursionError):  # the latter for thousands of levels
        return None
