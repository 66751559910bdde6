"""Slow and idle clients lose their connection."""

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from anyio import CapacityLimiter, to_thread
from fastapi.testclient import TestClient

from service.web.limits.connections import LEAST_BYTES, SHORT_PIECES, BoundedProtocol, LimitedServer, connection_limit
from tests.service.web.world import event, lines, make_world

BODY = b"x" * 1_000_000
LONG = 50  # times the body
GONE = 20
BURST = 300


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
def running(
    app: Any = application, protocol: type[BoundedProtocol] = BoundedProtocol, early: int = 0, **limits: float
) -> Iterator[int]:
    """Serve; `early`: so many connections are there before the server is."""
    kind = type("Limited", (protocol,), {"header_s": 0.2, "stalled_s": 0.2, "drain_s": 0.2, **limits})
    listening = socket.create_server(("127.0.0.1", 0), backlog=BURST)
    server = LimitedServer(uvicorn.Config(app, http=kind, lifespan="off", ws="none", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    clients = [connected(listening.getsockname()[1]) for _ in range(early)]
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        for one in (listening, *clients):
            one.close()


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


@pytest.mark.parametrize(
    ("start", "worked"),
    [("GET /", 2), ("GET /known", 2), ("POST /", 2), ("POST /known", GONE + 2)],
)
def test_what_clients_ask_for_who_are_gone_is_given_up(start: str, worked: int) -> None:
    """Six seconds of a stranger's connections, each closed at once, held the server up for a minute.

    A change by somebody who is known is made all the same: the client may have gone after a time limit of its own.
    """
    held, lost, done = threading.Event(), [], []

    def work(path: str) -> None:
        done.append(path)
        assert held.wait(60)

    async def works(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/known":
            scope["state"]["identified"] = "ana"
        await to_thread.run_sync(work, scope["path"], limiter=one_at_a_time)
        await application(scope, receive, send)

    class Counting(BoundedProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            lost.append(exc)

    one_at_a_time = CapacityLimiter(1)
    with running(works, Counting) as port, connected(port) as first:
        asked = f"{start} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        first.sendall(asked)
        wait_until(lambda: len(done) == 1)
        for _ in range(GONE):
            with connected(port) as gone:
                gone.sendall(asked)
        wait_until(lambda: len(lost) == GONE)
        with connected(port) as last:
            last.sendall(asked)
            held.set()
            assert first.recv(12) == last.recv(12) == b"HTTP/1.1 200"
    assert len(done) == worked


def test_a_caller_is_known_by_what_the_application_says(tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0")
    state: dict[str, Any] = {}

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        state.clear()
        scope["state"] = state
        await world.app(scope, receive, send)

    for token, is_known in ((world.token("ingest"), True), ("flt_unknown", False)):
        client = TestClient(watched, headers={"Authorization": f"Bearer {token}"})
        assert client.post("/api/v1/events", content=lines(event())).is_success == is_known
        assert ("identified" in state) == is_known
    world.store.close()


def test_a_burst_of_connections_takes_few_descriptors_at_a_time() -> None:
    """All that waited were accepted before the first was refused: 2,048 more descriptors than the limit says."""
    opened: list[int] = []

    class Counting(BoundedProtocol):
        def connection_made(self, transport: Any) -> None:
            opened.append(len(list(Path("/proc/self/fd").iterdir())))
            super().connection_made(transport)

    before = len(list(Path("/proc/self/fd").iterdir()))
    with running(protocol=Counting, early=BURST, limit=3, header_s=60.0):
        wait_until(lambda: len(opened) == BURST)
    clients = BURST
    assert max(opened) - before - clients < BURST // 2


def wait_until(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.01)
