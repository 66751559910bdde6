"""One POST to an address that was checked: no redirects, no proxy, one deadline for all of it, little of the answer."""

import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpcore2
from httpcore2 import NetworkBackend, NetworkStream, SyncBackend

from service.deliveries.channels.address_check import Network, Refused, Resolve, permitted, resolve


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `text`: the beginning of the body."""

    status: int
    retry_after: str | None
    text: str


class NoAnswer(Exception):
    """The request got no answer; says why, in words for the administrator, without the address's query."""


class Poster:
    """Sends requests. Safe to share between threads.

    Args:
        allow: internal networks that may be connected to.
        timeout_s: seconds a request may take from the look-up of the name to the end of the answer.
        answer_bytes: bytes of an answer's body that are read.
        tls: whom to trust.
        lookup: asks for a name's addresses.
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
        """Send `body` and return the answer, whatever its status.

        Raises:
            NoAnswer: see there.
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
        """A connection to the one address that may be."""
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
    """A connection whose every operation ends at the deadline, however slowly bytes drip in."""

    def __init__(self, stream: NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """As the real one."""
        del timeout
        return self._stream.read(max_bytes, timeout=_left(self._deadline, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """As the real one."""
        del timeout
        self._stream.write(buffer, timeout=_left(self._deadline, httpcore2.WriteTimeout))

    def close(self) -> None:
        """As the real one."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> NetworkStream:
        """As the real one; the certificate must be the name's, not the address's."""
        del timeout
        left = _left(self._deadline, httpcore2.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """As the real one."""
        return self._stream.get_extra_info(info)


def _left(deadline: float, late: type[httpcore2.TimeoutException]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    return left
