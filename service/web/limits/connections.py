"""Connections of the server: time limits for slow clients, and a bound on their number."""

import asyncio
import resource
from typing import Any

import h11
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
    closed.
    """

    limit = MAX_CONNECTIONS
    header_s = HEADER_S
    stalled_s = STALLED_S
    drain_s = DRAIN_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = BoundedConnection(h11.SERVER, HEADER_BYTES)
        self.opened_at = 0.0
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or replace another one."""
        assert isinstance(transport, asyncio.Transport)
        self.opened_at = self.loop.time()
        super().connection_made(transport)
        if len(self.connections) > self.limit:
            waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one.is_waiting]
            oldest = min(waiting, key=lambda one: one.opened_at)
            oldest.transport.abort()
            if oldest is self:
                return
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        for timer in (self._header_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

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


def protocol(limit: int) -> type[BoundedProtocol]:
    """The protocol with a limit of connections, as `uvicorn.Config(http=...)` takes it."""
    return type("LimitedProtocol", (BoundedProtocol,), {"limit": limit})
