"""Checks every page with axe, for all of WCAG 2.2 AA and target sizes; a new page is included automatically."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.flows.chromium import fits, tab
from tests.flows.every_page.page_paths import PATHS
from tests.flows.test_pages import stock
from tests.service.web.live import serving
from tests.service.web.stored_layers import add_layer
from tests.service.web.test_app import PUBLIC, WANTED, filled
from tests.service.web.world import World, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOG = "/failures/1/logs/1/0/lines?q=e"
BOARD = "/groups?view=board"
MORE = [
    "/failures?q=nothing",
    "/failures?side=user",
    "/failures/3?side=user",
    "/groups?state=new",
    "/failures/3",
    "/nothing",
    "/?since=7d",
    LOG,
    BOARD,
]


def judged(world: World) -> None:
    """Create the data of regular use: a merge, a mute, feedback on verdicts, an audit sample, a saved view."""
    with world.client() as client:
        groups = [group["id"] for group in client.get("/api/v1/groups").json()["items"]]
        client.post(f"/api/v1/groups/{groups[0]}/actions", json={"action": "merge", "groups": groups[-1:]})
        client.post(f"/api/v1/groups/{groups[1]}/actions", json={"action": "mute", "failures": 9})
        client.post(f"/api/v1/groups/{groups[0]}/actions", json={"action": "comment", "text": "seen before"})
        client.put("/api/v1/views", json={"name": "mine", "query": "side=user"})
        failures = [row["id"] for row in client.get("/api/v1/failures").json()["items"]]
        client.post(f"/api/v1/failures/{failures[0]}/feedback", json={"kind": "contest", "note": "no"})
        client.post(f"/api/v1/failures/{failures[1]}/feedback", json={"kind": "correct", "cause": "SYS.5"})
    add_layer(world)
    world.clock.at += timedelta(days=7)
    world.services.feedback.draw()
    world.clock.at -= timedelta(days=7)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(tmp_path_factory.mktemp("site"))
    stock(world)
    judged(world)
    with serving(world.app) as address:
        yield address
    world.store.close()


@pytest.fixture(scope="module", params=[(1440, "light"), (390, "dark")], ids=["wide-light", "phone-dark"])
def page(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Page]:
    """One window for all pages: colours do not depend on its width, nor sizes on its colour scheme."""
    width, scheme = request.param
    with tab(browser, site, viewport={"width": width, "height": 900}, color_scheme=scheme) as made:
        yield made


@pytest.mark.parametrize("path", [*PATHS, *MORE])
def test_axe_finds_nothing_and_the_page_fits(page: Page, path: str) -> None:
    answer = page.request.get(filled(path).replace("2026-W46", "2026-W47"))
    if not answer.headers["content-type"].startswith("text/html"):
        assert WANTED.get(("GET", path)) != PUBLIC
        return
    content = answer.body()
    # Set as content, so that an error status of the page is not reported as an error of the tab.
    page.route(
        "**/page-under-test",
        lambda route: route.fulfill(body=content, content_type="text/html; charset=utf-8"),
        times=1,
    )
    page.goto("/page-under-test")
    assert page.locator("h1").count() == 1
    assert fits(page)
    menu = page.get_by_role("button", name="Menu")
    if path == "/" and menu.is_visible():
        menu.click()
        assert page.locator("nav").is_visible()
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    tags = {"runOnly": {"type": "tag", "values": TAGS}, "rules": {"target-size": {"enabled": True}}}
    assert violations(page, tags) == []


def violations(page: Page, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The rules that the page breaks, with some of the elements."""
    found = Axe().run(page, options=options).response["violations"]
    return [(violation["id"], [node["html"][:200] for node in violation["nodes"][:3]]) for violation in found]


def test_axe_is_listening(browser: Browser, site: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html><body><img src='data:,'><button style='width:9px;height:9px'></button>")
    with tab(browser, site) as page:
        page.set_content(bad.read_text())
        rules = {violation["id"] for violation in Axe().run(page).response["violations"]}
    assert {"image-alt", "html-has-lang", "button-name"} <= rules
