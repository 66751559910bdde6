"""A page reads one snapshot of the database: what arrives while it is built is on the next page, not on half of it."""

from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.contracts.event import from_object
from service.web import group_views, views
from tests.service.web.world import World, event

LATE = "late-arrival"


def arrive_after(monkeypatch: pytest.MonkeyPatch, world: World, module: ModuleType, read: str) -> None:
    """Store one more failure as soon as the page has made this read."""
    plain = getattr(module, read)
    arrived: list[bool] = []

    def reading(*args: Any, **options: Any) -> Any:
        found = plain(*args, **options)
        if not arrived:
            arrived.append(True)
            world.services.ingest([from_object(event(LATE, user=LATE))])
        return found

    monkeypatch.setattr(module, read, reading)


@pytest.mark.parametrize(
    ("path", "module", "read"),
    [
        ("/", views, "stats"),
        ("/failures", views, "failures"),
        ("/failures/1", views, "failure"),
        ("/groups/1", group_views, "group"),
    ],
)
def test_a_page_shows_nothing_that_arrived_after_its_first_read(
    path: str, module: ModuleType, read: str, world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.services.ingest([from_object(event("7"))])
    arrive_after(monkeypatch, world, module, read)
    page = client.get(path)
    assert page.status_code == 200
    assert LATE not in page.text
    assert LATE in client.get(path).text


def test_counts_and_health_of_one_answer_are_of_one_time(
    world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.services.ingest([from_object(event("7"))])
    arrive_after(monkeypatch, world, views, "stats")
    before, after = (client.get("/api/v1/stats").json() for _ in range(2))
    assert before["pipeline"]["health"]["diagnosed"] == before["stats"]["failed"] == 1
    assert after["pipeline"]["health"]["diagnosed"] == after["stats"]["failed"] == 2
