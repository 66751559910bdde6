"""Pages in Chromium when things go wrong: many tabs, an expired session, a slow server or none, double clicks."""

import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from service.people import api_tokens
from tests.flows.chromium import expect_text, fits, tab
from tests.service.web.live import serving
from tests.service.web.world import NOW, World, event, lines, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

# Chromium without a window calls every tab visible: the tests say which one is not.
VISIBILITY = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = make_world(tmp_path)
    with made.client() as client:
        client.post("/api/v1/events", content=lines(event("1"), event("2", user="bo")))
    yield made
    made.store.close()


def hide(page: Page) -> None:
    page.evaluate(VISIBILITY, True)


def show(page: Page) -> None:
    page.evaluate(VISIBILITY, False)


def open_tab(context: BrowserContext, path: str) -> Page:
    page = context.new_page()
    page.goto(path, timeout=120_000)
    return page


@pytest.mark.parametrize("path", ["/", "/failures", "/failures/1"])
def test_pages_in_many_tabs_do_not_keep_the_next_one_from_loading(browser: Browser, world: World, path: str) -> None:
    with serving(world.app) as address:
        context = browser.new_context(base_url=address)
        tabs = []
        for _ in range(8):
            tabs.append(open_tab(context, path))
            hide(tabs[-1])
        with tabs[0].expect_request("**/live?*"):
            show(tabs[0])
        context.close()


def test_a_page_that_is_looked_at_again_tells_what_came_meanwhile(browser: Browser, world: World) -> None:
    with serving(world.app) as address, tab(browser, address) as page:
        page.goto("/failures")
        page.wait_for_timeout(1_000)  # until the stream has said which incidents are open
        hide(page)
        with world.client() as client:
            client.post("/api/v1/events", content=lines(event("3")))
            shared = {"cluster": "orion", "kind": "file_system", "value": "/scratch"}
            assert client.post("/api/v1/incidents", json=shared).status_code in {200, 201}
        page.wait_for_timeout(2_500)
        expect(page.locator("[data-live]")).to_be_hidden()
        show(page)
        expect_text(page.locator("[data-live]"), "1 new failure, show")
        expect_text(page.locator("#toasts [role=alert]"), "New incident")


def logged_in(context: BrowserContext, secret: str) -> Page:
    page = open_tab(context, "/login")
    page.get_by_label("API token").fill(secret)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login" not in url)
    return page


def test_an_expired_session_is_said_and_leads_to_the_login_and_back(browser: Browser, tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0")
    secret = world.token("read", "act", "ingest")
    with world.client(secret) as client:
        client.post("/api/v1/events", content=lines(event("1")))
    with serving(world.app) as address:
        context = browser.new_context(base_url=address)
        page = logged_in(context, secret)
        page.goto("/failures/1")
        context.clear_cookies()
        for _ in range(2):
            page.get_by_role("button", name="Confirm", exact=True).click()
        toast = page.locator("#toasts [role=alert]")
        expect_text(toast, "You are no longer logged in. Nothing was changed.")
        expect(toast).to_have_count(1)
        toast.get_by_role("link", name="Log in").click()
        page.get_by_label("API token").fill(secret)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(f"{address}/failures/1")
        context.close()
    world.store.close()


def test_an_answer_that_does_not_come_is_not_called_a_change_that_was_not_made(browser: Browser, world: World) -> None:
    with serving(world.app) as address:
        context = browser.new_context(base_url=address)
        errors: list[str] = []
        page = open_tab(context, "/failures/1")
        page.on("pageerror", lambda error: errors.append(str(error)))

        def lose_the_answer() -> None:
            page.route("**/feedback", lambda route: (route.fetch(max_redirects=0), route.abort()), times=1)

        lose_the_answer()
        page.get_by_role("button", name="Confirm", exact=True).click()
        toast = page.locator("#toasts [role=alert]")
        expect_text(toast, "The server did not answer.")
        with world.client() as client:
            assert client.get("/api/v1/failures/1/feedback").json()["items"], "the server had received it"
        assert "Nothing was changed" not in toast.inner_text()
        assert errors == []
        context.close()


def test_two_clicks_create_one_token_and_show_its_secret(
    browser: Browser, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicked, one_by_one, create = threading.Event(), threading.Lock(), api_tokens.create

    def slow(*args: Any, **options: Any) -> Any:
        with one_by_one:
            clicked.wait(timeout=120)
            return create(*args, **options)

    monkeypatch.setattr(api_tokens, "create", slow)
    with serving(world.app) as address, tab(browser, address) as page:
        page.goto("/settings")
        page.get_by_text("Create a token…").click()
        page.get_by_label("name", exact=True).fill("dashboard")
        page.locator(".make-token [value=admin]").check()
        create_it = page.locator(".make-token button")
        create_it.scroll_into_view_if_needed()
        place = create_it.bounding_box()
        assert place is not None
        for _ in range(2):
            page.mouse.click(place["x"] + 5, place["y"] + 5)
            page.wait_for_timeout(300)
        clicked.set()
        expect_text(page.locator(".created"), "The token dashboard is created.")


NODES = ["ip-10-120-33-214.us-west-2.compute.internal", "n" * 190]


@pytest.mark.parametrize("node", NODES, ids=["cloud", "endless"])
def test_tables_with_long_names_of_nodes_fit(browser: Browser, tmp_path: Path, node: str) -> None:
    world = make_world(tmp_path)
    names = {
        "cluster": "production-eks-us-west-2-training",
        "job_id": f"{'language-pretraining-' * 3}{uuid.UUID(int=7)}",
    }
    with world.client() as client:
        logs = [{"rank": 0, "stream": "stderr", "node": node, "tail": "KeyError: 'weight_decay'\n"}]
        sent = event(nodes=[node, "other"], user="firstname.lastname", logs=logs, **names)
        client.post("/api/v1/events", content=lines(sent))
    with serving(world.app) as address:
        for width in (390, 1100, 1280, 1440):
            with tab(browser, address, viewport={"width": width, "height": 900}) as page:
                for path in ("/", "/failures", "/groups/1", "/failures/1", "/automation"):
                    page.goto(path)
                    assert fits(page), (width, path)
    world.store.close()


def test_a_day_in_the_report_is_one_line_beside_a_long_headline(browser: Browser, world: World) -> None:
    tail = f"RuntimeError: {'Größe der Matrix ' * 20}"
    logs = [{"rank": 0, "stream": "stderr", "tail": tail}]
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("long", logs=logs)))
    with serving(world.app) as address, tab(browser, address, viewport={"width": 1000, "height": 900}) as page:
        page.goto("/reports/2026-W47")
        lines_of = """one => {
          const text = document.createRange();
          text.selectNodeContents(one);
          return text.getClientRects().length;
        }"""
        assert page.locator('td[data-label="first seen"]').first.evaluate(lines_of) == 1


def test_the_figures_beside_a_chart_are_whole_however_large(browser: Browser, world: World) -> None:
    with world.client() as client:
        long = (NOW - timedelta(days=300)).isoformat()
        client.post("/api/v1/events", content=lines(event("large", gpus=100_000, started_at=long)))
    with serving(world.app) as address, tab(browser, address, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/")
        chart = page.locator(".chart", has_text="GPU-hours lost")
        chart.locator(".u-over").wait_for()
        room, needed = chart.evaluate("""async chart => {
          for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
          const canvas = document.createElement("canvas").getContext("2d");
          canvas.font = "12px " + getComputedStyle(document.body).fontFamily;
          const left = one => one.getBoundingClientRect().left;
          const room = left(chart.querySelector(".u-over")) - left(chart.querySelector(".uplot"));
          return [room, canvas.measureText("600,000,000").width];
        }""")
        assert room > needed
