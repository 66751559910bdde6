"""Requests are refused before their body is read."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from anyio import to_thread
from starlette.types import Message

from service.errors import TimedOut
from service.web.request_gate import BODY_BYTES, PUBLIC_BODY_BYTES, RequestGate, is_forwarded
from tests.service.web.world import World, event, lines

POSTS = ("/api/v1/events", "/api/v1/policy:replay", "/api/v1/labels", "/failures/1/hold", "/nothing")


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Anything", "Forwarded", "Via", "X-Real-IP", "CDN-Loop"],
)
def test_a_service_without_a_login_refuses_what_a_proxy_forwards(world: World, header: str) -> None:
    paths = ("/", "/login", "/api/v1/stats", "/health/live", "/static/faultline.css")
    with world.client() as client:
        assert {path: client.get(path).status_code for path in paths} == dict.fromkeys(paths, 200)
        forwarded = {header: "127.0.0.1"}
        assert {path: client.get(path, headers=forwarded).status_code for path in paths} == dict.fromkeys(paths, 403)
        bearer = {**forwarded, "Authorization": f"Bearer {world.token('read')}"}
        assert {path: client.get(path, headers=bearer).status_code for path in paths} == dict.fromkeys(paths, 200)


def test_a_service_without_a_login_refuses_the_protocol_of_a_proxy_that_does_not_name_itself(world: World) -> None:
    """By default, nginx adds no header, sets the Host to that of the server, and uses HTTP/1.0."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/v1/stats", "query_string": b"", "scheme": "http"}
    scope |= {"headers": [(b"host", b"127.0.0.1:8080"), (b"connection", b"close")], "root_path": ""}
    for version in ("1.0", "1.1"):
        asyncio.run(world.app(scope | {"http_version": version}, receive, send))
    assert [one["status"] for one in sent if "status" in one] == [403, 200]


def test_headers_of_programs_are_not_those_of_a_proxy() -> None:
    assert not is_forwarded({"host": "localhost", "user-agent": "curl", "x-user": "ana", "x-forward": "x"})


@pytest.mark.parametrize("path", POSTS)
def test_nothing_of_a_strangers_body_is_read(guarded: World, path: str) -> None:
    taken = 0

    def body() -> Iterator[bytes]:
        nonlocal taken
        taken += 1
        yield b"{}"

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"x"), (b"transfer-encoding", b"chunked")],
        "server": ("x", 80),
        "client": ("y", 1),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
    }
    sent: list[Message] = []
    pieces = body()

    async def receive() -> Message:
        return {"type": "http.request", "body": next(pieces, b""), "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(guarded.app(scope, receive, send))
    assert sent[0]["status"] == 401
    assert taken == 0


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize(
    ("path", "limit"), [("/login", PUBLIC_BODY_BYTES), ("/api/v1/policy:replay", BODY_BYTES), ("/views", BODY_BYTES)]
)
def test_a_body_is_limited_by_its_route(guarded: World, path: str, limit: int, *, chunked: bool) -> None:
    content: Any = b" " * (limit + 1)
    with guarded.client(guarded.token("admin")) as client:
        answer = client.post(path, content=iter([content]) if chunked else content)
        assert answer.status_code == 413
        assert client.post(path, content=b" " * 100).status_code != 413


def test_events_may_be_larger(guarded: World) -> None:
    with guarded.client(guarded.token("ingest")) as client:
        body = lines(event()) + b"\n" + b" " * (BODY_BYTES * 2)
        assert client.post("/api/v1/events", content=body).json()["accepted"] == 1


@pytest.mark.parametrize("path", ["/login", "/api/v1/events"])
def test_a_body_that_never_ends_is_given_up(guarded: World, path: str) -> None:
    token = guarded.token("ingest")

    async def application(_scope: Any, receive: Any, _send: Any) -> None:
        await receive()

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(_message: Message) -> None:
        raise AssertionError

    gate = RequestGate(application, services=guarded.services, body_s=0.05)
    headers = [(b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    with pytest.raises(TimedOut):
        asyncio.run(gate(scope, never, send))


@pytest.mark.parametrize("forwarded", [False, True])
def test_the_process_says_that_it_lives_while_all_threads_work(guarded: World, *, forwarded: bool) -> None:
    """Otherwise whoever watches over it would kill it in the middle of the work."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    async def ask() -> None:
        limiter = to_thread.current_default_thread_limiter()
        for worker in range(int(limiter.total_tokens)):
            limiter.acquire_on_behalf_of_nowait(worker)
        headers = [(b"host", b"faultline.example")] + [(b"x-forwarded-for", b"192.0.2.1")] * forwarded
        scope = {"type": "http", "method": "GET", "path": "/health/live", "headers": headers, "query_string": b""}
        async with asyncio.timeout(5):
            await guarded.app(scope | {"root_path": "", "http_version": "1.1", "scheme": "http"}, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 200
