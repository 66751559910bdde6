"""Connections of the server: time limits for slow clients, and a bound on their number."""

import asyncio
import resource
import socket
from typing import Any, ClassVar

import h11
import uvicorn
from anyio import CancelScope
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0  # from the first byte of a connection or request to the end of its header
STALLED_S = 60.0  # a client that reads nothing of its response
DRAIN_S = 10.0  # for the rest of a body after its request was refused
HEADER_BYTES = 16 * 1024  # of a request
MAX_CONNECTIONS = 1_000
# Each piece of a body costs the same time, however short it is (measured: a stranger's one-byte chunks held the server
# up for seconds). Pieces of one body that may be short, and the bytes that more have on average (judgement).
SHORT_PIECES = 256
LEAST_BYTES = 64
_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})
BACKLOG = 2048  # connections that wait to be accepted
ACCEPTED_AT_ONCE = 32  # well below the descriptors that stay free
# Descriptors that stay free for the database, logs and deliveries (judgement).
RESERVED_DESCRIPTORS = 128


def connection_limit(wanted: int = MAX_CONNECTIONS) -> int:
    """The number of connections to accept: the wanted number, but fewer than the process may open descriptors."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, max(descriptors - RESERVED_DESCRIPTORS, descriptors // 2)))


class BoundedConnection(h11.Connection):
    """Parses requests; a body of many tiny pieces is an error of the client."""

    _pieces = 0
    _bytes = 0

    def next_event(self) -> Any:
        """The next event.

        Raises:
            h11.RemoteProtocolError: what the client sent is no HTTP, or has too many tiny pieces.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > SHORT_PIECES and self._bytes < LEAST_BYTES * self._pieces:
                raise h11.RemoteProtocolError("too many tiny pieces of a body")
        return event


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 in which a slow or idle client can't keep others from connecting.

    At `limit` connections, a new one replaces the oldest that waits for its client. If none does, the new connection is
    closed. What a client asked for who is gone is given up, unless it is a change by a caller who is known: connections
    that are closed at once would otherwise leave more work behind than the limit allows.
    """

    limit = MAX_CONNECTIONS
    header_s = HEADER_S
    stalled_s = STALLED_S
    drain_s = DRAIN_S
    _by_age: ClassVar[dict["BoundedProtocol", None]] = {}  # oldest first

    def __init_subclass__(cls) -> None:
        """Each server has a class of its own, which counts its connections."""
        cls._by_age = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedConnection(h11.SERVER, HEADER_BYTES)
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._is_lost = False
        self._running: CancelScope | None = None
        self._application = self.app
        self.app = self._answer

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Run the application until it ends, or its work is given up."""
        if self._is_lost and _is_dispensable(scope):
            return
        with CancelScope() as self._running:
            await self._application(scope, receive, send)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or replace another one."""
        assert isinstance(transport, asyncio.Transport)
        super().connection_made(transport)
        self._by_age[self] = None
        if len(self._by_age) > self.limit:
            oldest = next(one for one in self._by_age if one.is_waiting)
            del self._by_age[oldest]  # now: it is lost only when all connections that came with this one are made
            oldest.transport.abort()
            if oldest is self:
                return
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers, and the work on an answer that nobody will read."""
        for timer in (self._header_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._by_age.pop(self, None)
        self._is_lost = True
        self.app = self._application  # no circle of references: it would stay until the next garbage collection
        if self._running is not None and not self._has_no_request and _is_dispensable(self.cycle.scope):
            self._running.cancel()

    @property
    def is_waiting(self) -> bool:
        """Whether it has no request, or one of which a part is missing, or an answer that the client does not read."""
        return self._has_no_request or self.cycle.more_body or self._write_timer is not None

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._has_no_request and self._header_timer is None:
            self._expect_header()
        super().data_received(data)
        if not self._has_no_request and self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; after an answer began, only the end of the connection can say so."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Wait for the client to read, for a limited time."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self.stalled_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue to write."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    @property
    def _has_no_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect_header(self) -> None:
        drains = self.cycle is not None and self.cycle.more_body  # the rest of a body that was refused
        self._header_timer = self.loop.call_later(self.drain_s if drains else self.header_s, self._give_up)

    def _give_up(self) -> None:
        self._header_timer = None
        if self._has_no_request:
            self.transport.abort()


def _is_dispensable(scope: Any) -> bool:
    """Whether nobody misses the work on a request: it changes nothing, or nobody has shown yet who sends it."""
    return scope["method"] in _CHANGES_NOTHING or "identified" not in scope["state"]  # see RequestGate


class LimitedServer(uvicorn.Server):
    """Accepts few connections before it sees to those that it has: each takes a descriptor, also one to be refused."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen at the sockets."""
        self.config.backlog = ACCEPTED_AT_ONCE  # asyncio accepts so many in a row
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(BACKLOG)


def protocol(limit: int) -> type[BoundedProtocol]:
    """The protocol with a limit of connections, as `uvicorn.Config(http=...)` takes it."""
    return type("LimitedProtocol", (BoundedProtocol,), {"limit": limit})
