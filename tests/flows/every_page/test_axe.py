"""Checks every page with axe, for all of WCAG 2.2 AA and target sizes; a new page is included automatically."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize

from tests.flows.chromium import fits, tab
from tests.flows.every_page.page_paths import PATHS
from tests.service.web.test_app import PUBLIC, WANTED, filled

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOG = "/failures/1/logs/1/0/lines?q=e"
BOARD = "/groups?view=board"
# What can differ between light and dark colours, of all rules with these tags.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
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


@pytest.fixture(scope="module", params=[1440, 390], ids=["wide", "phone"])
def page(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Page]:
    """One window for all pages, in which buttons change their colours at once: axe would see the colours on the way."""
    viewport: ViewportSize = {"width": request.param, "height": 900}
    with tab(browser, site, viewport=viewport, reduced_motion="reduce") as made:
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
    with dark(page):
        assert violations(page, {"runOnly": {"type": "rule", "values": COLOUR_RULES}}) == []


@contextmanager
def dark(page: Page) -> Iterator[None]:
    """Show the page that is open in dark colours."""
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    try:
        assert page.evaluate(BACKGROUND) != light
        yield
    finally:
        page.emulate_media(color_scheme="light")


def violations(page: Page, options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """The rules that the page breaks, with some of the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    # Not all results: what passes has a megabyte for each page.
    found: list[tuple[str, list[str]]] = page.evaluate(
        """async (options) => (await axe.run({ resultTypes: ["violations"], selectors: false, ...options })).violations
          .map((rule) => [rule.id, rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])""",
        options,
    )
    return found


def test_axe_is_listening(browser: Browser, site: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html><body><img src='data:,'><button style='width:9px;height:9px'></button>")
    with tab(browser, site) as page:
        page.set_content(bad.read_text())
        rules = {rule for rule, _ in violations(page, {})}
    assert {"image-alt", "html-has-lang", "button-name"} <= rules
