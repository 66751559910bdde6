"""The node pages in Chromium: nodes are easy to find, on desktop and phone, and repairs are recorded by a form."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from tests.flows.chromium import expect_text, fits, tab
from tests.service.web.live import serving
from tests.service.web.world import NOW, World, event, lines, log, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=4711, name=python, GPU has fallen off the bus."
HOSTILE = "\u202e<script>document.title='owned'</script>{{ 7*7 }} PASSWORD=hunter2hunter2"


def stock(world: World) -> None:
    events, output = [], []
    for number in range(60):
        ended = NOW - timedelta(hours=3 * number)
        times = {"ended_at": ended.isoformat(), "started_at": (ended - timedelta(hours=6)).isoformat()}
        nodes = [f"gpu{(number + k) % 20:03d}" for k in range(4)]
        events.append(event(f"ok{number}", status="succeeded", logs=[], nodes=nodes, **times))
        if number % 12 == 0:
            events.append(event(f"x{number}", logs=[log(XID)], nodes=["gpu018"], **times))
            at = (ended - timedelta(seconds=40)).isoformat()
            output.append({"cluster": "orion", "node": "gpu018", "at": at, "source": "kernel", "text": XID, "gpu": 3})
        if number % 15 == 4:
            events.append(event(f"m{number}", nodes=nodes, **times))
    until = (NOW + timedelta(hours=4)).isoformat()
    window = {"start": (NOW - timedelta(hours=1)).isoformat(), "end": until, "kind": "maintenance"}
    output.append({"cluster": "orion", "nodes": ["gpu018", "gpu003"], "text": "GPU 3 to be replaced", **window})
    output.append({"cluster": "orion", "node": "gpu018", "at": NOW.isoformat(), "text": HOSTILE, "source": HOSTILE})
    long = {"cluster": "orion", "node": "n" * 200, "at": NOW.isoformat(), "text": "link is down " + "x" * 3_000}
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*events))
        assert client.post("/api/v1/node-events", content=lines(*output, long)).json()["rejected"] == []
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(tmp_path_factory.mktemp("site"))
    stock(world)
    with serving(world.app) as address:
        yield address
    world.store.close()


@pytest.fixture(params=[1440, 390], ids=["desk", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Page]:
    size = {"width": request.param, "height": 900}
    with tab(browser, site, viewport=size, java_script_enabled=False) as made:
        yield made


def test_the_worst_node_stands_first_and_its_page_says_why(page: Page) -> None:
    page.goto("/nodes")
    assert fits(page)
    expect_text(page.locator("h1"), "1 node fails more often")
    first = page.locator("table.nodes tbody tr").first
    assert "gpu018" in first.inner_text()
    assert "suspect" in first.inner_text()
    first.get_by_role("link").first.click()
    expect_text(page.locator("h1"), "times as often")
    assert fits(page)
    page.wait_for_load_state("domcontentloaded")
    assert XID in page.content()
    expect_text(page.locator(".answer"), "Maintenance 2026-11-20")
    failed = page.locator("table.node-events tr", has_text="job failed").first.bounding_box()
    assert failed is not None
    assert failed["height"] < 200, "the cells of a row stand side by side"


def test_the_history_of_a_node_is_narrowed_to_one_side(page: Page) -> None:
    page.goto("/nodes/orion/gpu018")
    shown = page.locator("table.node-events tr.of-failure")
    every = shown.count()
    page.get_by_role("link", name="user", exact=True).click()
    expect(page.get_by_role("link", name="user", exact=True)).to_have_attribute("aria-current", "true")
    assert shown.count() < every
    expect(shown.locator(".side.hardware")).to_have_count(0)
    expect(page.get_by_role("img", name=re.compile("failures in each of the last 28 days"))).to_be_visible()
    assert fits(page)


def test_events_of_a_node_are_shown_as_text_without_secrets(page: Page) -> None:
    page.goto("/nodes/orion/gpu018")
    assert "owned" not in page.title()
    expect_text(page.locator("table.node-events"), "<script>document")
    assert "hunter2" not in page.content()
    page.goto("/nodes?sort=node")
    assert fits(page)
    page.goto("/nodes/orion/" + "n" * 200)
    assert fits(page)


def test_an_operator_marks_it_as_repaired(page: Page) -> None:
    size = page.viewport_size
    assert size is not None
    page.goto("/nodes/orion/gpu003" if size["width"] > 1_000 else "/nodes/orion/gpu004")
    page.get_by_label("repair").fill("NIC replaced")
    page.get_by_role("button", name="Mark as repaired").click()
    expect_text(page.locator("[role=status]"), "The repair is recorded")
    expect_text(page.locator(".answer"), "NIC replaced")


def test_nodes_are_sorted_by_their_headers_or_by_a_field_where_there_are_none(page: Page) -> None:
    page.goto("/nodes?limit=5")
    order = page.get_by_label("order")
    header = page.get_by_role("columnheader", name="Node", exact=True)
    if page.viewport_size == {"width": 1440, "height": 900}:
        expect(order).to_be_hidden()
        header.get_by_role("link").click()
        expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Node")
        assert page.url.endswith("/nodes?limit=5&sort=node")
        page.get_by_role("button", name="Show").click()  # the form keeps the order that is shown
    else:
        order.select_option("by name")
        page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"[?&]sort=node"))
    expect_text(page.locator("table.nodes tbody tr").first, "gpu000")
    assert fits(page)


def test_groups_are_sorted_by_their_headers_or_by_a_field_where_there_are_none(page: Page) -> None:
    page.goto("/groups")
    if page.viewport_size == {"width": 1440, "height": 900}:
        expect(page.get_by_label("order")).to_be_hidden()
        page.get_by_role("columnheader", name="GPU-h").get_by_role("link").click()
    else:
        page.get_by_label("order").select_option("most GPU-hours lost first")
        page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"[?&]sort=-gpu_hours_lost"))
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("GPU-h")
    assert fits(page)
    page.goto("/groups?view=board")
    expect(page.get_by_label("order")).to_be_visible()
