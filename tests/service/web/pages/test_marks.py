"""Marks of a period: incidents, repairs of nodes and changes of the model, in the charts and as a list."""

import json
import re
from datetime import datetime, timedelta
from html import unescape

from fastapi.testclient import TestClient

from service.incidents.records import NewIncident
from service.learning.records import PACKAGED
from service.web.pages.charts import marks
from tests.service.web.world import NOW, World, event, lines


def happenings(world: World) -> None:
    """An open incident 30 hours ago, a repair two hours ago, a change of the model an hour ago, and a failed job."""
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
    found = NewIncident(
        key="orion|file_system|/scratch", kind="file_system", value="/scratch", cluster="orion", cause="SYS.5",
        title="File system /scratch fails jobs", by="policy", probe_at=None,
    )  # fmt: skip
    with world.store.unit_of_work() as work:
        world.clock.at = NOW - timedelta(hours=30)
        opened, _ = work.incidents.open(found)
        work.incidents.change(opened.id, jobs=4, users=3)
        work.repairs.note("orion", "gpu018", at=NOW - timedelta(hours=2), actor="chen", text="riser replaced")
        world.clock.at = NOW - timedelta(hours=1)
        work.site_layers.promote(PACKAGED, "dana", "better on audits")
        world.clock.at = NOW


def listed(page: str) -> list[str]:
    found = re.findall(r"<li value=.*?</li>", page, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", one)).split()) for one in found]


def drawn(page: str) -> list[list[tuple[int, float]]]:
    return [json.loads(unescape(data))["marks"] for data in re.findall(r'data-chart="([^"]+)"', page)]


def test_what_happened_besides_failures_is_listed_in_order_and_drawn(world: World, client: TestClient) -> None:
    happenings(world)
    page = client.get("/").text
    assert listed(page) == [
        "1 11-19 06:00 incident I-1 : File system /scratch fails jobs 4 jobs of 3 users, still open",
        "2 11-20 10:00 repair of gpu018 : riser replaced",
        "3 11-20 11:00 model changed to the packaged model : better on audits by dana",
    ]
    for chart in drawn(page):
        assert [number for number, _ in chart] == [2, 3], "the incident was opened before the period"
    for chart in drawn(client.get("/?since=7d").text):
        assert [number for number, _ in chart] == [1, 2, 3]
    assert drawn(client.get("/goodput?since=7d").text)[0]
    assert page.count('<line class="mark"') == 4, "the server's drawing has them too, in both charts"


def test_marks_are_those_of_the_period_and_cluster(world: World, client: TestClient) -> None:
    happenings(world)
    [incident] = listed(client.get("/?since=2026-11-19T05:00:00Z&until=2026-11-19T10:00:00Z").text)
    assert incident.startswith("1 11-19 06:00 incident")
    [model] = listed(client.get("/?cluster=vega").text)
    assert "model changed" in model, "a model serves all clusters"
    assert not listed(client.get("/?since=2026-11-10&until=2026-11-12").text)


def test_a_mark_lies_in_its_part_as_far_in_as_it_is_late() -> None:
    limits = [NOW, NOW + timedelta(hours=1), NOW + timedelta(hours=3)]

    def mark(number: int, at: datetime) -> marks.Mark:
        return marks.Mark(number, at, at >= NOW, "repair", "", ("", ""), "")

    found = [mark(1, NOW - timedelta(hours=1)), mark(2, NOW + timedelta(minutes=30)), mark(3, NOW + timedelta(hours=2))]
    assert marks.places(found, limits) == [(2, 0.5), (3, 1.5)]
    assert marks.places([mark(1, NOW + timedelta(hours=3))], limits) == []
