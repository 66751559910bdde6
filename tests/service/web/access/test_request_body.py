"""Bodies: bounded whatever way they come."""

import asyncio
import gzip
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.errors import Unavailable
from service.web.limits.request_body import MAX_BYTES, BodyMemory, IntakeTurns
from service.web.request_gate import STREAMED
from tests.service.web.world import World, event, lines

EVENTS = "/api/v1/events"


def test_a_body_of_a_length_too_large_is_refused(client: TestClient) -> None:
    answer = client.post(EVENTS, content=b" " * (MAX_BYTES + 1))
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["expected"] == f"at most {MAX_BYTES} bytes"


def test_a_chunked_body_is_measured_while_it_comes(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * 1024 * 1024

    assert client.post(EVENTS, content=chunks()).status_code == 413


def test_the_largest_body_is_taken(client: TestClient) -> None:
    padded = lines(event()) + b"\n"
    answer = client.post(EVENTS, content=padded + b" " * (MAX_BYTES - len(padded)))
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 1


def zipped(*members: bytes) -> bytes:
    return b"".join(gzip.compress(member) for member in members)


def test_gzip_is_read_in_one_member_or_several(client: TestClient) -> None:
    headers = {"Content-Encoding": "gzip"}
    answer = client.post(EVENTS, content=zipped(lines(event("1")) + b"\n", lines(event("2"))), headers=headers)
    assert answer.json()["accepted"] == 2


def test_a_bomb_goes_off_at_16_mib(client: TestClient) -> None:
    bomb = zlib.compress(b" " * (256 * 1024 * 1024), level=9, wbits=31)
    assert len(bomb) < 1024 * 1024
    answer = client.post(EVENTS, content=bomb, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "body",
    [b"not gzip", b"", gzip.compress(b"{}", mtime=0)[:-9], gzip.compress(b"{}", mtime=0) + b"rest"],
    ids=["not gzip", "empty", "cut", "trailing bytes"],
)
def test_damaged_gzip_is_reported(client: TestClient, body: bytes) -> None:
    answer = client.post(EVENTS, content=body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["expected"] == "gzip"


def test_another_encoding_is_reported(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    answer = client.post(EVENTS, content=b"x", headers={"Content-Encoding": "br"})
    assert answer.status_code == 415
    assert "Content-Encoding" not in caplog.text, "a wrong request is not written to the service's log"
    assert answer.json()["errors"] == [{"field": "Content-Encoding", "expected": "gzip or none", "got": "br"}]


def test_slow_bodies_of_one_sender_leave_memory_for_those_of_others() -> None:
    """Eight bodies of 16 MiB that arrived slowly kept all other senders out for five minutes."""
    memory = BodyMemory(limit=100)
    memory.grow(50, "one")
    with pytest.raises(Unavailable, match="requests of yours"):
        memory.grow(1, "one")
    memory.grow(50, "other")
    with pytest.raises(Unavailable, match="other large requests are"):
        memory.grow(1, "third")
    memory.shrink(50, "one")
    memory.grow(50, "third")


def test_bodies_of_one_sender_leave_a_thread_for_those_of_others() -> None:
    """Many bodies at once made others wait for all of them."""
    go, running = threading.Event(), threading.Semaphore(0)

    def slow() -> str:
        running.release()
        assert go.wait(60)
        return "slow"

    async def asked() -> list[str]:
        turns = IntakeTurns(threads=3)
        async with asyncio.TaskGroup() as group:
            held = [group.create_task(turns.run("one", slow)) for _ in range(6)]
            while not await asyncio.to_thread(running.acquire, timeout=0.01):
                pass
            assert await turns.run("other", lambda: "at once") == "at once"
            assert not any(one.done() for one in held)
            go.set()
        return [one.result() for one in held]

    assert asyncio.run(asked()) == ["slow"] * 6


@pytest.mark.parametrize("path", sorted(STREAMED))
def test_every_body_of_the_intake_takes_a_turn_of_its_sender(
    world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    turns: list[str] = []
    run = IntakeTurns.run

    async def counted(own: IntakeTurns, sender: str, handle: Any) -> Any:
        turns.append(sender)
        return await run(own, sender, handle)

    monkeypatch.setattr(IntakeTurns, "run", counted)
    assert client.post(path, content=b"{}").status_code == 200
    assert turns == ["this machine"]
    assert not world.app.state.body_memory._used, "what was counted is released"
