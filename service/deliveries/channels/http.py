"""A POST request to a checked address: no redirects, no proxy, one deadline, and a limited response size.

Deliveries may use public addresses, and internal ones in networks that the administrator lists.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpcore2
from httpcore2 import NetworkBackend, NetworkStream, SyncBackend

from classifiers.redaction import redact
from service.backoff import retry_after_s
from service.deliveries.channels.channel import SENT, Outcome
from service.internet_addresses import Network, inside, is_public

GONE = 410
# Standard Webhooks treats 429, 502 and 504 as a request to send less; 503 carries Retry-After by RFC 9110.
THROTTLING = frozenset({429, 502, 503, 504})


Resolve = Callable[[str, int], Sequence[str]]


class Refused(Exception):
    """The name has no permitted address; the message names those it has."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, from the system's resolver.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def permitted(host: str, port: int, allow: Sequence[Network], *, plain: bool = False, lookup: Resolve = resolve) -> str:
    """The one address of `host` to connect to.

    Args:
        host: a name or an address.
        port: the port.
        allow: permitted internal networks.
        plain: without TLS, which is permitted for listed networks only.
        lookup: resolves the name, called once.

    Raises:
        Refused: none of its addresses is permitted.
        OSError: the name has no address.
    """
    found = lookup(host, port)
    for text in found:
        address = ipaddress.ip_address(text.partition("%")[0])
        if any(inside(address, network) for network in allow) or (not plain and is_public(address)):
            return text
    listed = ", ".join(found)
    if plain:
        raise Refused(f"http:// leads to {listed}, and only networks under [network] allow may do without TLS")
    raise Refused(f"{host} leads to {listed}: internal, and not in a network under [network] allow")


@dataclass(frozen=True, slots=True)
class Answer:
    """The response. `text`: the beginning of the body."""

    status: int
    retry_after: str | None
    text: str


class NoAnswer(Exception):
    """The request got no response; the message explains why, without the query of the address."""


class Poster:
    """Sends requests. Thread-safe.

    Args:
        allow: permitted internal networks.
        timeout_s: the deadline of a request, from the name lookup to the end of the response.
        answer_bytes: bytes of the response body that are read.
        tls: trusted certificates.
        lookup: resolves host names.
    """

    def __init__(
        self,
        allow: Sequence[Network],
        *,
        timeout_s: float,
        answer_bytes: int,
        tls: ssl.SSLContext | None = None,
        lookup: Resolve = resolve,
    ) -> None:
        self._allow = tuple(allow)
        self._timeout_s = timeout_s
        self._answer_bytes = answer_bytes
        self._tls = ssl.create_default_context() if tls is None else tls
        self._lookup = lookup

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send `body` and return the response, whatever its status.

        Raises:
            NoAnswer: there is no response.
        """
        deadline = time.monotonic() + self._timeout_s
        plain = url.startswith("http://")
        backend = _Backend(lambda host, port: self._address(host, port, plain=plain), deadline)
        try:
            with (
                httpcore2.ConnectionPool(ssl_context=self._tls, network_backend=backend, http2=False) as pool,
                pool.stream("POST", url, headers=list(headers.items()), content=body) as response,
            ):
                got = b""
                for part in response.iter_stream():
                    got += part
                    if len(got) >= self._answer_bytes:
                        break
                retry = next((value for name, value in response.headers if name.lower() == b"retry-after"), None)
                return Answer(
                    response.status,
                    None if retry is None else retry.decode("latin-1"),
                    got[: self._answer_bytes].decode("utf-8", "replace"),
                )
        except Refused as error:
            raise NoAnswer(str(error)) from None
        except httpcore2.TimeoutException:
            raise NoAnswer(f"no answer within {self._timeout_s:g} s") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError, OSError) as error:
            raise NoAnswer(f"{type(error).__name__}: {error}"[:300]) from None

    def _address(self, host: str, port: int, *, plain: bool) -> str:
        return permitted(host, port, self._allow, plain=plain, lookup=self._lookup)


class _Backend(NetworkBackend):
    """Connects to the checked address only; every wait ends at the deadline."""

    def __init__(self, address: Callable[[str, int], str], deadline: float) -> None:
        self._address = address
        self._deadline = deadline
        self._real = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """A connection to the permitted address."""
        del timeout
        try:
            address = self._address(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host}: {error.strerror or error}") from error
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        stream = self._real.connect_tcp(
            address, port, timeout=left, local_address=local_address, socket_options=socket_options
        )
        return _Stream(stream, self._deadline)


class _Stream(NetworkStream):
    """A connection whose every operation ends at the deadline, however slowly data arrives."""

    def __init__(self, stream: NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """As in the wrapped stream."""
        del timeout
        return self._stream.read(max_bytes, timeout=_left(self._deadline, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """As in the wrapped stream."""
        del timeout
        self._stream.write(buffer, timeout=_left(self._deadline, httpcore2.WriteTimeout))

    def close(self) -> None:
        """As in the wrapped stream."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        """As in the wrapped stream; the certificate must match the name, not the address."""
        del timeout
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """As in the wrapped stream."""
        return self._stream.get_extra_info(info)


def _left(deadline: float, late: type[httpcore2.TimeoutException]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    return left


def post(
    poster: Poster,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    now: datetime,
    meaning: Callable[[Answer, datetime], Outcome],
) -> Outcome:
    """Send a request and return its outcome."""
    try:
        answer = poster.post(url, content, headers)
    except NoAnswer as error:
        return Outcome("retry", redact(str(error)))
    return meaning(answer, now)


def of_webhook(answer: Answer, now: datetime) -> Outcome:
    """By Standard Webhooks: 2xx is success, 410 disables the endpoint, everything else is retried."""
    if 200 <= answer.status < 300:  # noqa: PLR2004 - the statuses of success
        return SENT
    if answer.status == GONE:
        return Outcome("gone", "410: the receiver accepts no more messages")
    return _again(answer, now)


def of_service(answer: Answer, now: datetime) -> Outcome:
    """For a service with a documented API: a bad request stays one, however often it is sent."""
    if 200 <= answer.status < 300:  # noqa: PLR2004 - as above
        return SENT
    if answer.status in {400, 413, 422}:
        return Outcome("refused", _detail(answer))
    return _again(answer, now)


def _again(answer: Answer, now: datetime) -> Outcome:
    wait = retry_after_s(answer.retry_after, now)
    return Outcome("retry", _detail(answer), wait, throttled=answer.status in THROTTLING)


def _detail(answer: Answer) -> str:
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the statuses of redirection
        return f"{answer.status}: redirects are not followed"
    body = " ".join(redact(answer.text).split())  # before it is cut: half of a secret has no known form
    return (f"{answer.status}: {body}" if body else str(answer.status))[:300]
