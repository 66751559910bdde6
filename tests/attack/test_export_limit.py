"""Many exports at once take neither the memory of the server nor the turn of others for long."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from service.reports import pdf
from service.reports.document import Report
from service.web import export, views
from service.web.limits.caller_limits import RETRY_AFTER_S
from tests.attack.server import ROOT
from tests.service.web.world import World, event, lines, make_world

MOST_RUNNING, MOST_OF_ONE = 3, 2
PATHS = ("/api/v1/failures/export.csv", "/api/v1/failures/export.json")


@pytest.fixture
def world(new_database: Callable[[], str], tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path, new_database(), host="0.0.0.0")
    with made.client(made.token("ingest", "act", "read", name="sender")) as client:
        assert client.post("/api/v1/events", content=lines(event("1"), event("2"))).json()["accepted"] == 2
    yield made
    made.store.close()


class Held:
    """Holds every export before its first portion until `go` is set; `started` counts those that wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.started = threading.Semaphore(0)
        original = views.failures

        def page(*given: Any, **named: Any) -> Any:
            self.started.release()
            assert self.go.wait(60)
            return original(*given, **named)

        monkeypatch.setattr(views, "failures", page)


def ask(world: World, token: str, path: str) -> tuple[int, str | None, str]:
    with world.client(token) as client:
        answer = client.get(path)
        return answer.status_code, answer.headers.get("retry-after"), answer.text


def test_only_a_few_exports_run_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    callers = [world.token("read", name=f"reader-{number}") for number in range(3)]
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(ask, world, callers[0], path) for path in PATHS]
        assert all(held.started.acquire(timeout=60) for _ in waiting)
        status, again, text = ask(world, callers[0], PATHS[0])
        assert (status, again) == (429, str(RETRY_AFTER_S))
        assert "exports of yours" in text
        others = PATHS[: MOST_RUNNING - MOST_OF_ONE]
        waiting += [pool.submit(ask, world, callers[1], path) for path in others]
        assert all(held.started.acquire(timeout=60) for _ in others)
        assert len(waiting) == MOST_RUNNING
        status, again, text = ask(world, callers[2], PATHS[1])
        assert (status, again) == (429, str(RETRY_AFTER_S))
        held.go.set()
        assert [one.result()[0] for one in waiting] == [200] * len(waiting)
    assert [ask(world, caller, path)[0] for caller in callers for path in PATHS] == [200] * 6


def test_an_export_that_is_refused_or_fails_does_not_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = world.token("read", name="reader")
    for _ in range(MOST_RUNNING + 1):
        assert ask(world, caller, f"{PATHS[0]}?since=never")[0] == 422
        assert ask(world, caller, f"{PATHS[0]}?sort=nothing")[0] == 422
    with monkeypatch.context() as broken:

        def fails(*given: Any) -> Iterator[bytes]:
            del given
            yield b"a"
            raise ConnectionResetError

        broken.setattr(export, "as_csv", fails)
        for _ in range(MOST_RUNNING + 1):
            with pytest.raises(ConnectionResetError):
                ask(world, caller, PATHS[0])
    assert ask(world, caller, PATHS[0])[0] == 200


@pytest.mark.parametrize("file", ["deploy/Dockerfile", "deploy/systemd/faultline-web.service"])
def test_a_server_is_started_with_few_arenas_of_memory(file: str) -> None:
    lines_of_file = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert any("MALLOC_ARENA_MAX=2" in line and line.startswith(("ENV ", "Environment=")) for line in lines_of_file)


def test_only_a_few_reports_are_printed_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One caller who asked for the reports of forty weeks held all threads for 15 s, and 0.7 GiB."""
    printed: list[str] = []

    def render(report: Report) -> bytes:
        printed.append(report.week)
        return b"%PDF-"

    monkeypatch.setattr(pdf, "render", render)
    caller, other = world.token("read", name="reader"), world.token("read", name="other")
    limit = world.services.pdfs
    with world.client(caller) as client:
        assert client.get("/reports/2026-W45.pdf").status_code == 200
        sender = identified_sender(world, caller)
        with limit.one_of(sender), limit.one_of(sender):
            assert ask(world, caller, "/reports/2026-W46.pdf")[:2] == (429, str(RETRY_AFTER_S))
            assert client.get("/reports/2026-W45.pdf").status_code == 200, "it is printed already"
            assert client.get("/reports/2026-W46.md").status_code == 200
            assert ask(world, other, "/reports/2026-W46.pdf")[0] == 200
            with limit.one_of("a third"):
                assert ask(world, other, "/reports/2026-W47.pdf")[0] == 429
        assert client.get("/reports/2026-W44.pdf").status_code == 200
    assert printed == ["2026-W45", "2026-W46", "2026-W44"]


def identified_sender(world: World, token: str) -> str:
    """By whom the requests of a token are counted."""
    with world.store.reading() as reading:
        found = reading.tokens.find(token)
    assert found is not None
    return f"\x1ftoken/{found.id}"
