"""A page reads one snapshot of the database: what arrives while it is built is on the next page, not on half of it."""

import re
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service import weeks
from service.contracts.event import from_object
from service.goodput import figures
from service.statistics.records import Scope
from service.web import group_views, views
from service.web.pages import overview
from tests.service.sample_rows import job, put
from tests.service.web.world import NOW, World, event

LATE = "late-arrival"


def arrive_after(monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: str, arrive: Callable[[], Any]) -> None:
    """Call `arrive`, which stores something, as soon as the page has made this read."""
    plain = getattr(module, read)
    arrived: list[bool] = []

    def reading(*args: Any, **options: Any) -> Any:
        found = plain(*args, **options)
        if not arrived:
            arrived.append(True)
            arrive()
        return found

    monkeypatch.setattr(module, read, reading)


def ingest_late(world: World) -> None:
    """Store one more failure."""
    world.services.ingest([from_object(event(LATE, user=LATE))])


@pytest.mark.parametrize(
    ("path", "module", "read"),
    [
        ("/", overview, "groups_needing_attention"),
        ("/failures", views, "failures"),
        ("/failures/1", views, "failure"),
        ("/groups/1", group_views, "group"),
    ],
)
def test_a_page_shows_nothing_that_arrived_after_its_first_read(
    path: str, module: ModuleType, read: str, world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.services.ingest([from_object(event("7"))])
    arrive_after(monkeypatch, module, read, lambda: ingest_late(world))
    page = client.get(path)
    assert page.status_code == 200
    assert LATE not in page.text
    assert LATE in client.get(path).text


def test_counts_and_health_of_one_answer_are_of_one_time(
    world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.services.ingest([from_object(event("7"))])
    arrive_after(monkeypatch, views, "stats", lambda: ingest_late(world))
    before, after = (client.get("/api/v1/stats").json() for _ in range(2))
    assert before["pipeline"]["health"]["diagnosed"] == before["stats"]["failed"] == 1
    assert after["pipeline"]["health"]["diagnosed"] == after["stats"]["failed"] == 2


def held(page: str) -> tuple[str, str]:
    """The GPU-hours held in the period: of the headline, and of the comparison with the period before."""
    headline = re.search(r"of ([0-9.]+) GPU-hours delivered", page)
    compared = re.search(r'<th scope="row">Held</th>(?:<td class="n"[^>]*>([0-9.]+)[^<]*</td>){2}', page)
    assert headline is not None
    assert compared is not None
    return headline[1], compared[1]


def test_the_figures_of_goodput_and_their_comparison_are_of_one_time(
    world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(name: str, days: int) -> None:
        end = NOW - timedelta(days=days)
        put(world.store, [job(name, ended_at=end, started_at=end - timedelta(hours=2), gpus=8)])

    ended("before", 40)
    ended("now", 2)
    arrive_after(monkeypatch, figures, "compute", lambda: ended(LATE, 1))
    assert held(client.get("/goodput").text) == ("16", "16")
    assert held(client.get("/goodput").text) == ("32", "32")


def test_the_lists_of_reports_are_of_one_time(
    world: World, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = NOW - timedelta(days=9)
    put(world.store, [job("7", cluster="orion", ended_at=ended, started_at=ended - timedelta(hours=2))])
    week = weeks.last_complete(NOW, world.services.zone)
    arrive_after(
        monkeypatch, views, "reports", lambda: world.services.reports.publish(week, LATE, Scope(cluster="orion"))
    )
    page = client.get("/reports")
    assert page.status_code == 200
    assert LATE not in page.text
    assert LATE in client.get("/reports").text
