"""Opens logs by URL through fsspec (https, s3, gs, abfs ...), limited to the allow-list and to allowed addresses."""

import contextlib
import importlib.util
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urljoin

import fsspec

from service.internet_addresses import Network, inside, is_public
from service.logs.allowed_roots import AllowedRoots, LogRefused, split
from service.logs.excerpt import SCAN_BYTES
from service.logs.local import LogNotFound, LogUnavailable, is_passing

_WEB = ("http", "https")
_BLOCK_BYTES = 4 * 1024 * 1024
_PORTION_BYTES = 4 * _BLOCK_BYTES  # more than any part of a log that is asked for at once
_CONNECT_S = 10.0
_WHOLE_S = 60.0
_GONE = (404, 410)
_DENIED = (401, 403)
_BUSY = (408, 425, 429)
_SERVER_FAILS = 500
_CHAIN_MOST = 8


Networks = Sequence[Network]
# Metadata of virtual machines of AWS by IPv6: inside a private range (fc00::/7) that log servers are in as well.
_METADATA = ip_address("fd00:ec2::254")
_THIS_MACHINE = "localhost"  # names of loopback addresses, by RFC 6761, section 6.3


class Remote:
    """The file systems of the URLs of the allow-list, each created on first use.

    Args:
        roots: the allow-list.
        networks: internal networks that the names of web servers in it may lead to.
    """

    def __init__(self, roots: AllowedRoots, networks: Networks = ()) -> None:
        self._roots = roots
        self._networks = tuple(networks)
        self._systems: dict[str, Any] = {}
        self._lock = threading.Lock()

    @contextmanager
    def open_log(self, url: str) -> Iterator[tuple[Any, int | None]]:
        """Open a log and yield it with its size; None if the server does not report the size.

        Raises:
            LogRefused: not allowed, or the driver could not read it; `LogNotFound` if it does not exist,
                `LogUnavailable` if the server fails, is busy or does not answer.
        """
        self._roots.check_url(url)
        scheme = split(url).scheme.lower()
        system = self._system(scheme)
        try:
            file, size = self._opened(system, scheme, url)
            with file:
                yield file, size
        except LogRefused:
            raise
        except Exception as error:  # noqa: BLE001 - drivers raise any exception; one log must not stop a batch
            raise _refusal(error) from None

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            systems, self._systems = self._systems, {}
        for system in systems.values():
            session = getattr(system, "_session", None)
            if session is not None and hasattr(system, "close_session"):
                with contextlib.suppress(Exception):
                    system.close_session(system.loop, session)

    def _opened(self, system: Any, scheme: str, url: str) -> tuple[Any, int | None]:
        if scheme not in _WEB:
            file = system.open(url, "rb", block_size=_BLOCK_BYTES)
            return file, getattr(file, "size", None)
        size = system.info(url).get("size")
        if size is not None and size > SCAN_BYTES:  # the end of the log is read by range requests
            return system.open(url, "rb", block_size=_BLOCK_BYTES, size=size), size
        return system.open(url, "rb", block_size=0), None

    def _system(self, scheme: str) -> Any:
        with self._lock:
            if scheme not in self._systems:
                self._systems[scheme] = self._make(scheme)
            return self._systems[scheme]

    def _make(self, scheme: str) -> Any:
        if scheme in _WEB and importlib.util.find_spec("aiohttp") is None:
            raise LogRefused("reading logs by http needs the extra faultline[logs-http]")
        options = {"get_client": self._web_client} if scheme in _WEB else {}
        try:
            return fsspec.filesystem(scheme, skip_instance_cache=True, **options)
        except (ValueError, ImportError) as error:
            raise LogRefused(f"no driver for {scheme}: {_described(error)}") from None

    async def _web_client(self, **options: Any) -> Any:
        """Create a session that follows a redirect only if the allow-list allows the target.

        Names are resolved for each connection, which is made to an address that was checked. An address in a URL is not
        resolved; it is one of the allow-list.
        """
        import aiohttp  # noqa: PLC0415 - an optional dependency, needed only for logs read by HTTP

        networks = self._networks

        class Checked(aiohttp.ThreadedResolver):
            async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> Any:
                found = await super().resolve(host, port, family)
                allowed = [one for one in found if is_allowed(host, one["host"], networks)]
                if found and not allowed:
                    raise LogRefused(
                        "the server's name leads to an internal address, and not into FAULTLINE_LOG_NETWORKS"
                    )
                return allowed

        class Bounded(aiohttp.ClientResponse):
            async def read(self) -> bytes:
                """Read a part of a log. fsspec would read whatever comes, of any length."""
                parts, size = list[bytes](), 0
                async for part in self.content.iter_any():
                    size += len(part)
                    if size > _PORTION_BYTES:
                        self.close()
                        raise LogRefused("the server sends more than the part that was asked for")
                    parts.append(part)
                return b"".join(parts)

        async def check(_session: Any, _context: Any, step: aiohttp.TraceRequestRedirectParams) -> None:
            target = step.response.headers.get("Location") or step.response.headers.get("URI") or ""
            try:
                self._roots.check_url(urljoin(str(step.url), target))
            except LogRefused as refused:
                raise LogRefused(f"redirected away: {refused}") from None

        trace = aiohttp.TraceConfig()
        trace.on_request_redirect.append(check)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=Checked(), use_dns_cache=False),
            trace_configs=[trace],
            response_class=Bounded,
            timeout=aiohttp.ClientTimeout(total=_WHOLE_S, sock_connect=_CONNECT_S),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            **options,
        )


def _refusal(error: BaseException) -> LogRefused:
    """Translate an error of a driver; fsspec raises FileNotFoundError for every failure of a first request."""
    chain: list[BaseException] = [error]
    while (deeper := chain[-1].__cause__ or chain[-1].__context__) is not None and len(chain) < _CHAIN_MOST:
        chain.append(deeper)
    for one in chain:
        if isinstance(one, LogRefused):
            return one
    with_status = [one for one in chain if isinstance(getattr(one, "status", None), int)]
    status = with_status[0].status if with_status else None  # type: ignore[attr-defined]  # checked above
    if status in _GONE or (isinstance(error, FileNotFoundError) and len(chain) == 1):
        return LogNotFound("no such log")
    if isinstance(error, PermissionError) or status in _DENIED:
        return LogRefused("permission denied")
    is_later = status is not None and (status in _BUSY or status >= _SERVER_FAILS)
    kind = LogUnavailable if is_later or any(is_passing(one) or _lost_connection(one) for one in chain) else LogRefused
    return kind(f"could not be read ({_described(chain[1] if isinstance(error, FileNotFoundError) else error)})")


def _lost_connection(error: BaseException) -> bool:
    """Whether aiohttp, an optional dependency, reports that a connection could not be made or broke."""
    names = {one.__name__ for one in type(error).__mro__ if one.__module__.startswith("aiohttp.")}
    return not names.isdisjoint({"ClientConnectionError", "ClientPayloadError"})


def _described(error: BaseException) -> str:
    """Return the type of an error without its text, which may contain the URL with its signature."""
    status = getattr(error, "status", None)
    return type(error).__name__ + (f" {status}" if isinstance(status, int) else "")


def is_allowed(host: str, address: str, networks: Networks) -> bool:
    """Whether a connection to an address is allowed.

    Whoever answers for the name may change its address at any time. A public address is allowed, another one only in a
    network that the settings list, or if the name itself says that it is this machine. A network that contains an
    address of metadata allows it only if it is that address alone.

    Args:
        host: the name in the URL.
        address: one of its addresses, as resolved for this connection.
        networks: the networks of the administrator.
    """
    found = ip_address(address.partition("%")[0])
    if found == _METADATA:
        networks = [network for network in networks if network.num_addresses == 1]
    if is_public(found) or any(inside(found, network) for network in networks):
        return True
    name = host.lower().rstrip(".")
    return found.is_loopback and (name == _THIS_MACHINE or name.endswith(f".{_THIS_MACHINE}"))
