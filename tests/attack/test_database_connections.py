"""No page holds a connection to the database while it waits for another: many of them at once would block all pages."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.db.session import ReadSession, Store
from tests.service.web.test_app import WANTED
from tests.service.web.world import event, lines, log, make_world

LOGS = ("NVRM: Xid 79", "Stale file handle /x", "ModuleNotFoundError: No module named 'x'")


def addresses() -> Iterator[str]:
    for method, path in WANTED:
        if method != "GET" or path.endswith("/live") or path == "/logout":
            continue
        there = path.replace("{cluster}", "orion").replace("{node:path}", "gpu018").replace("{index}", "0")
        for week in ("2026-W46", "2026-W47"):
            yield re.sub(r"\{[^}]+\}", "1", there.replace("{week}", week))


def test_a_page_uses_one_connection_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.local()
    twice: set[str] = set()
    address = ""
    reading = Store.reading

    @contextmanager
    def counted(store: Store) -> Iterator[ReadSession]:
        held.number = getattr(held, "number", 0) + 1
        if held.number > 1:
            twice.add(address)
        try:
            with reading(store) as session:
                yield session
        finally:
            held.number -= 1

    world = make_world(tmp_path)
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*(event(str(n), logs=[log(LOGS[n % 3])]) for n in range(9))))
        client.post("/api/v1/incidents", json={"cluster": "orion", "kind": "node", "value": "gpu018"})
        monkeypatch.setattr(Store, "reading", counted)
        for address in addresses():
            assert client.get(address).status_code < 500, address
    world.store.close()
    assert twice == set()
