"""Slow and idle clients lose their connection."""

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import uvicorn

from service.web.limits.connections import LEAST_BYTES, SHORT_PIECES, BoundedProtocol, connection_limit

BODY = b"x" * 1_000_000
LONG = 50  # times the body


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/refused":
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(LONG if scope["path"] == "/long" else 1):
        await send({"type": "http.response.body", "body": BODY, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def running(**limits: float) -> Iterator[int]:
    kind = type("Limited", (BoundedProtocol,), {"header_s": 0.2, "stalled_s": 0.2, "drain_s": 0.2, **limits})
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, http=kind, lifespan="off", ws="none", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def is_closed(client: socket.socket) -> bool:
    """Whether the server closes the connection, within the time-out of the socket."""
    try:
        while client.recv(65_536):
            pass
    except ConnectionResetError:
        return True
    return True


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_a_connection_without_a_whole_header_is_closed(start: bytes) -> None:
    with running() as port, connected(port) as client:
        client.sendall(start)
        assert is_closed(client)


def test_a_header_that_comes_letter_by_letter_is_given_up() -> None:
    with running() as port, connected(port) as client:
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011, PT012 - broken pipe or reset, at any write
            while time.monotonic() - began < 20:
                client.sendall(b"G")
                time.sleep(0.02)


def test_the_rest_of_a_refused_body_is_not_read_for_long() -> None:
    with running() as port, connected(port) as client:
        client.sendall(b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 401"
        began = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT011, PT012 - broken pipe or reset, at any write
            while time.monotonic() - began < 20:
                client.sendall(b"x")
                time.sleep(0.02)


@pytest.mark.parametrize(("size", "status"), [(1, b"400"), (LEAST_BYTES - 1, b"400"), (LEAST_BYTES, b"200")])
def test_the_chunks_of_a_body_have_a_least_size_on_average(size: int, status: bytes) -> None:
    chunk = b"%x\r\n%s\r\n" % (size, b"x" * size)
    for pieces in (SHORT_PIECES, 4 * SHORT_PIECES):  # a few may be as short as they like
        with running() as port, connected(port) as client:
            client.sendall(b"POST /short HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.sendall(chunk * pieces + b"0\r\n\r\n")
            assert client.recv(12)[9:] == (b"200" if pieces == SHORT_PIECES else status)


def test_a_client_that_reads_nothing_is_dropped() -> None:
    """It gets what was sent before, and not the rest of the 50 MB."""
    with running() as port, connected(port) as client:
        client.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        time.sleep(1)
        received = 0
        with suppress(ConnectionResetError):
            while piece := client.recv(1 << 20):
                received += len(piece)
        assert received < LONG * len(BODY)


def test_a_new_connection_replaces_the_oldest_that_waits() -> None:
    with running(limit=3, header_s=60) as port:
        waiting = [connected(port) for _ in range(3)]
        try:
            with connected(port) as last:
                last.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert last.recv(12) == b"HTTP/1.1 200"
            assert is_closed(waiting[0])
            waiting[2].sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert waiting[2].recv(12) == b"HTTP/1.1 200"
        finally:
            for one in waiting:
                one.close()


def test_a_new_connection_replaces_one_whose_client_does_not_read() -> None:
    """Clients without a login can ask for public files too: all connections of the limit, for a minute each."""
    with running(limit=3, stalled_s=60.0, header_s=60.0) as port:
        stalled = [connected(port) for _ in range(3)]
        try:
            for one in stalled:
                one.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
                assert one.recv(12) == b"HTTP/1.1 200"
            time.sleep(0.5)  # until the buffers of both sides are full
            with connected(port) as last:
                last.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert last.recv(12) == b"HTTP/1.1 200"
        finally:
            for one in stalled:
                one.close()


def test_the_limit_stays_below_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 4_096))
    assert connection_limit(1_000) == 128
    assert connection_limit(10) == 10
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert connection_limit(1_000) == 1_000
