"""Figures of charts as JSON, the map of nodes, and what the header says of the time range."""

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service.nodes.records import NodeRow
from service.statistics.records import PeriodCount
from service.web.app import create_app
from service.web.pages import navigation
from service.web.pages.charts import figures, node_map, sparklines
from service.web.pages.forms import with_zone
from service.web.pages.templating import STYLES
from tests.service.sample_rows import job, put
from tests.service.web.world import HERE, NOW, World

BERLIN = ZoneInfo("Europe/Berlin")


def node(name: str, ratio: float, low: float, high: float, *, blame: float = 1, cluster: str = "orion") -> NodeRow:
    return NodeRow(cluster, name, ratio, low, high, 100.0, blame, 10, 1, None, None, None, None, None, NOW)


def test_bars_carry_their_limits_and_the_colour_of_each_series() -> None:
    limits = [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (0, 6, 12)]
    found = json.loads(figures.stacked("failed", limits, {"hardware": [1, 2], "mine": [0, 1]}, colours={"mine": "--x"}))
    assert [later - earlier for earlier, later in zip(found["limits"], found["limits"][1:], strict=False)] == [
        21600
    ] * 2
    assert [(one["name"], one["colour"]) for one in found["series"]] == [("hardware", "--hardware"), ("mine", "--x")]
    assert found["whole"]
    assert not json.loads(figures.stacked("GPU-hours", limits, {"user": [0.5, 1]}))["whole"]


def test_a_line_over_time_differs_from_one_over_shares() -> None:
    assert json.loads(figures.line([1.0, 2.0], {"goodput": [0.9, None]}, time=True))["time"]
    shares = json.loads(figures.line([0.5], {"right": [0.6]}, titles=("confidence", "share right"), begin=0.4))
    assert (shares["time"], shares["right"], shares["up"], shares["from"]) == (False, "confidence", "share right", 0.4)


def shown_times(data: dict[str, Any]) -> list[str]:
    """The beginnings of the parts of a chart as the page shows them."""
    times = zip(data["limits"], data["offsets"], strict=True)
    return [f"{datetime.fromtimestamp(at + offset, UTC):%m-%d %H:%M}" for at, offset in times][:-1]


def test_charts_over_a_change_of_the_clock_show_the_times_of_the_zone(world: World) -> None:
    """In Berlin, the clock was put back at 2026-10-25 03:00."""
    ended = datetime(2026, 10, 24, 20, 30, tzinfo=UTC)
    put(
        world.store,
        [job(name, ended_at=at, started_at=at - timedelta(hours=2)) for name, at in (("a", ended), ("b", NOW))],
    )
    client = TestClient(create_app(replace(world.services, timezone="Europe/Berlin")), base_url=HERE)

    def charts(address: str) -> list[dict[str, Any]]:
        page = client.get(address).text
        return [json.loads(html.unescape(found)) for found in re.findall(r'data-chart="([^"]+)"', page)]

    bars, *_ = charts("/goodput?since=2026-10-19&until=2026-11-22")
    assert shown_times(bars)[0] == "10-19 00:00"
    assert {time[6:] for time in shown_times(bars)} == {"00:00"}
    [line] = [one for one in charts("/goodput?since=2026-10-19&until=2026-11-22") if one["kind"] == "line"]
    assert [f"{datetime.fromtimestamp(at, UTC):%m-%d %H:%M}" for at in line["at"]] == ["10-24 00:00", "11-20 00:00"]
    hours, *_ = charts("/?since=2026-10-24T22:00:00Z&until=2026-10-25T03:00:00Z")
    assert shown_times(hours) == ["10-25 00:00", "10-25 01:00", "10-25 02:00", "10-25 02:00", "10-25 03:00"]


def test_nodes_are_darker_where_jobs_fail_more_often() -> None:
    rows = [
        node("b", 6.0, 3.0, 9.0),
        node("a", 0.2, 0.1, 0.9),
        node("c", 1.5, 0.8, 3.0),
        node("d", 2.0, 1.2, 3.0),
        node("e", 1.0, 0.1, 3.0, blame=0),
        node("z", 1.0, 0.5, 1.5, cluster="andromeda"),
    ]
    found = node_map.node_map(rows)
    assert [cluster for cluster, _ in found] == ["andromeda", "orion"]
    [block] = found[1][1]
    assert {cell.row.node: cell.level for cell in block.cells} == {"a": 0, "b": 4, "c": 2, "d": 3, "e": 1}
    assert [level for level, _ in node_map.KEY] == [0, 1, 2, 3, 4]


def blocks(*rows: NodeRow) -> dict[str, list[str]]:
    """The names of the nodes of each block of the only cluster."""
    [(_, found)] = node_map.node_map(rows)
    return {block.title: [cell.row.node for cell in block.cells] for block in found}


def at(name: str, rack: str | None = None, switch: str | None = None) -> NodeRow:
    return replace(node(name, 1.0, 0.5, 1.5), rack=rack, switch=switch)


def test_nodes_stand_with_those_of_their_rack_or_switch() -> None:
    rows = [at("n10", rack="r2"), at("n2", rack="r10"), at("n9", rack="r2"), at("x"), at("n1", rack="r10", switch="s")]
    assert blocks(*rows) == {"rack r2": ["n9", "n10"], "rack r10": ["n1", "n2"], "rack not known": ["x"]}
    assert blocks(at("n1", switch="leaf2"), at("n2", switch="leaf1")) == {
        "switch leaf1": ["n2"],
        "switch leaf2": ["n1"],
    }


def test_without_racks_the_names_tell_which_nodes_are_neighbours() -> None:
    names = [f"rack{rack}-node{number}" for rack in (2, 10) for number in (11, 1, 9)]
    assert blocks(*(at(name) for name in names)) == {
        "rack2-node1 to rack2-node11": ["rack2-node1", "rack2-node9", "rack2-node11"],
        "rack10-node1 to rack10-node11": ["rack10-node1", "rack10-node9", "rack10-node11"],
    }
    assert blocks(at("gpu2"), at("gpu10"), at("gpu1")) == {"": ["gpu1", "gpu2", "gpu10"]}
    assert blocks(at("pool-x7f"), at("pool-b3k"), at("pool-a9z")) == {"": ["pool-a9z", "pool-b3k", "pool-x7f"]}


def test_a_long_name_shows_where_it_differs_from_its_neighbours() -> None:
    [(_, [block])] = node_map.node_map([at("cluster-orion-rack3-node07")])
    assert block.cells[0].label == "…ack3-node07"


def test_the_smallest_value_of_a_period_can_be_seen() -> None:
    begin = datetime(2026, 11, 1, tzinfo=UTC)
    counts = [(0, 0.0), (1, 0.5), (99, 700.0)]
    parts = [
        PeriodCount(begin + timedelta(days=day), begin + timedelta(days=day + 1), 100, failed, {}, {"user": hours})
        for day, (failed, hours) in enumerate(counts)
    ]
    found = sparklines.of_period(parts)
    assert [height for _, height in found["failed"].bars] == [1.5, sparklines.HEIGHT]
    assert "99 at most" in found["failed"].text
    assert "700 at most" in found["gpu_hours"].text
    assert sparklines.of_period([]) == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-11-20T12:00:00Z", "11-20 13:00"),
        ("2026-11-20 08:15", "11-20 08:15"),
        ("7d", "7d"),
        ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59-12:00"),
    ],
)
def test_the_header_shows_a_time_in_the_zone_of_the_pages(text: str, shown: str) -> None:
    assert navigation.moment(text, BERLIN) == shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-11-20 08:15", "2026-11-20T08:15:00+01:00"),
        ("2026-11-20T08:15", "2026-11-20T08:15:00+01:00"),
        ("2026-02-30 08:15", "2026-02-30 08:15"),
        ("24h", "24h"),
        ("", None),
    ],
)
def test_the_time_picker_reads_times_of_the_pages_zone(text: str, read: str | None) -> None:
    assert with_zone(text, BERLIN) == read


def test_the_page_of_the_navigation_is_marked_on_pages_below_it(client: TestClient) -> None:
    assert navigation.area("/groups/7") == "/groups"
    assert '<a href="/model" class="within">' in client.get("/model/layers").text
    assert '<a href="/model" aria-current="page">' in client.get("/model").text


def test_static_files_are_compressed_and_kept_by_browsers(client: TestClient) -> None:
    styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', client.get("/failures").text)
    assert [address.partition("?")[0] for address in styles] == [f"/static/{name}" for name in STYLES]
    for address in styles:
        style = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert style.headers["Cache-Control"] == "public, max-age=31536000, immutable", address
        assert style.headers["Content-Encoding"] == "gzip", address
    assert "max-age=86400" in client.get("/static/chevron.svg").headers["Cache-Control"]
    page = client.get("/login", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in page.headers, "a page with secrets is not compressed"


def test_a_file_under_the_address_of_another_version_is_not_kept(client: TestClient) -> None:
    """While a service is upgraded, a page of a new process may ask an old one for its files."""
    old = client.get("/static/faultline.css?v=0123456789ab")
    assert (old.status_code, old.headers["Cache-Control"]) == (200, "no-store")
    assert client.get("/static/nothing.css?v=0123456789ab").status_code == 404
