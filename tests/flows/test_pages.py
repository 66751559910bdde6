"""An operator's navigation through the pages, in Chromium: with and without scripts, on phone and desktop."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Position, expect

from tests.flows.chromium import VARIANTS, Variant, expect_text, fits, follow, tab
from tests.service.web.live import serving
from tests.service.web.world import NOW, World, event, lines, log, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

FIRST = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
HOSTILE = "\x1b[31m\u202e<script>document.title='owned'</script><svg onload=\"document.title='owned'\">{{ 7*7 }}\x00"


def history() -> list[dict[str, object]]:
    """A typical day: most jobs succeed, GPUs fall off the bus, modules are missing, and one job sends hostile input."""
    steps = "\n".join(f"step {number}" for number in range(300))
    events = []
    for number in range(90):
        ended = NOW - timedelta(minutes=12 * number + 5)
        times = {"ended_at": ended.isoformat(), "started_at": (ended - timedelta(hours=2)).isoformat()}
        if number % 3 == 0:
            events.append(event(f"m{number}", **times))
        elif number % 9 == 1:
            logs = [log("ncclRemoteError Error", 0), log(f"{steps}\n{FIRST}\nRuntimeError: CUDA error", 1)]
            events.append(event(f"x{number}", gpus=64, user="bo", logs=logs, **times))
        else:
            events.append(event(f"ok{number}", status="succeeded", logs=[], **times))
    texts = dict.fromkeys(("name", "user", "team", "queue", "message", "reason", "command", "image"), HOSTILE)
    bad = log(f"{HOSTILE}\nModuleNotFoundError: {HOSTILE}\n{'A' * 200_000}")
    events.append(event("hostile", **texts, labels={HOSTILE: HOSTILE}, logs=[bad]))
    return events


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(tmp_path_factory.mktemp("site"))
    stock(world)
    with serving(world.app) as address:
        yield address
    world.store.close()


def stock(world: World) -> None:
    with world.client() as client:
        result = client.post("/api/v1/events", content=lines(*history(), b"{broken", HOSTILE.encode())).json()
        assert result["accepted"] == len(history())


@pytest.fixture(params=VARIANTS, ids=str)
def page(request: pytest.FixtureRequest, browser: Browser, site: str) -> Iterator[Page]:
    with tab(browser, site, **request.param.context, color_scheme="dark") as made:
        yield made


def test_from_the_overview_to_the_line_where_the_costliest_new_group_began_in_two_clicks(page: Page) -> None:
    page.goto("/")
    expect_text(page.locator("h1"), "of 91 job attempts failed")
    assert fits(page)
    costliest = page.locator(".look table.groups tbody tr", has_text="new").first
    assert "GPU fell off the bus (Xid 79)" in costliest.inner_text()
    costliest.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/groups/"))
    assert fits(page)
    page.locator("table.failures a").first.click()
    expect(page).to_have_url(re.compile("/failures/"))
    expect_text(page.locator("h1"), "GPU fell off the bus (Xid 79) on gpu018")
    expect_text(page.locator(".answer .says"), "Node gpu018 lost GPU 3")
    page.wait_for_load_state()
    first = page.locator(".evidence .initiating").first
    box = first.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900, "in view without scrolling"
    assert FIRST in first.inner_text()
    assert "rank 1" in first.inner_text()
    assert "301" in first.inner_text()
    expect_text(page.locator(".answer .do"), "Resubmit now without gpu018")
    assert fits(page)


def test_filters_live_in_the_url_and_are_kept_from_page_to_page(page: Page) -> None:
    page.goto("/failures")
    page.get_by_label("side").select_option("user")
    page.get_by_label("words in the log").fill("flash_attn")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("side=user"))
    expect(page).to_have_url(re.compile("q=flash_attn"))
    rows = page.locator("table.failures tbody tr")
    expect(rows).to_have_count(30)
    assert page.locator("table.failures .side").all_inner_texts() == ["user"] * 30
    page.goto(page.url + "&limit=20")
    page.get_by_role("link", name="Next 20").click()
    expect(rows).to_have_count(10)
    expect(page).to_have_url(re.compile("side=user"))
    page.locator(".chips a", has_text="flash_attn").click()
    expect(page).not_to_have_url(re.compile("q="))
    expect(page).to_have_url(re.compile("side=user"))
    page.goto(page.url)
    assert page.get_by_label("side").input_value() == "user"
    assert fits(page)


def test_every_count_opens_what_it_counts(page: Page) -> None:
    page.goto("/")
    cell = page.locator("table.figures tr", has_text="hardware").get_by_role("link")
    count = int(cell.inner_text())
    assert count == 10
    cell.click()
    expect(page.locator("table.failures tbody tr")).to_have_count(count)


def test_hostile_content_is_text_everywhere(page: Page) -> None:
    page.goto("/failures?q=ModuleNotFoundError")
    page.goto("/failures?status=failed")
    page.locator("tr", has_text="hostile").get_by_role("link").first.click()
    page.wait_for_url("**/failures/*")
    text = page.locator("body").inner_text()
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7*7 }}" in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert page.title() != "owned"
    assert page.locator("main script, main svg[onload]").count() == 0
    assert "more characters" in text
    assert fits(page)
    page.goto("/dead-letters")
    assert page.title() != "owned"
    assert fits(page)


def test_hostile_content_is_text_on_the_pages_of_groups_too(page: Page) -> None:
    page.goto("/groups?user=" + quote(HOSTILE))
    page.locator("table.groups .what a").first.click()
    page.wait_for_url("**/groups/*")
    assert page.title() != "owned"
    text = page.locator("body").inner_text()
    assert "<script>document.title='owned'</script>" in text
    assert "{{ 7*7 }}" in text
    assert "\u202e" not in text
    assert page.locator("main script, main svg[onload]").count() == 0
    assert fits(page)
    for path in ("/", "/model", "/feedback", "/groups"):
        page.goto(path)
        assert page.title() != "owned"
        assert fits(page), path


def test_hostile_content_that_arrives_live_is_text(browser: Browser, site: str) -> None:
    with tab(browser, site) as made:
        made.goto("/failures?status=failed")
        made.locator("tr", has_text="hostile").get_by_role("link").first.click()
        made.wait_for_url("**/failures/*")
        number = urlsplit(made.url).path.rpartition("/")[2]
        asked = made.request.post(f"/api/v1/failures/{number}:resubmit", data={"comment": HOSTILE})
        assert asked.ok
        stands = made.locator("#automation p[aria-live]")
        expect(stands).to_contain_text("waiting")
        made.request.post(f"/api/v1/failures/{number}:never", data={"comment": HOSTILE})
        expect(stands).to_contain_text("Never resubmitted")
        made.locator("#automation summary").last.click()
        expect_text(made.locator("#automation ol"), "<script>document.title='owned'</script>")
        assert made.title() != "owned"
        assert made.locator("main script, main svg[onload]").count() == 0


def test_a_failure_is_found_by_words_of_its_log(page: Page) -> None:
    page.goto("/failures")
    page.get_by_label("words in the log").fill("fallen off the BUS")
    page.get_by_role("button", name="Show").click()
    rows = page.locator("table.failures tbody tr")
    expect(rows).to_have_count(10)
    assert "GPU fell off the bus (Xid 79)" in rows.first.inner_text()


def test_counts_next_to_the_filters_open_what_they_count(page: Page) -> None:
    page.goto("/failures?status=failed")
    page.locator(".facets summary").click()
    page.locator(".facets").get_by_role("link", name="hardware", exact=True).click()
    expect(page).to_have_url(re.compile("side=hardware"))
    expect(page.locator("table.failures tbody tr")).to_have_count(10)


def test_filters_are_saved_under_a_name_and_forgotten(page: Page) -> None:
    page.goto("/failures?side=hardware")
    page.get_by_label("save these filters as").fill("lost GPUs")
    page.get_by_role("button", name="Save").click()
    expect_text(page.locator("[role=status]"), "Saved")
    page.goto("/failures")
    page.get_by_role("link", name="lost GPUs").click()
    expect(page).to_have_url(re.compile(r"/failures\?side=hardware$"))
    page.get_by_role("button", name="delete").click()
    expect_text(page.locator("[role=status]"), "Deleted.")
    expect(page.get_by_role("link", name="lost GPUs")).to_have_count(0)


def test_the_whole_log_opens_as_text(page: Page) -> None:
    page.goto("/failures?side=hardware")
    page.locator("table.failures tbody a").first.click()
    page.get_by_role("link", name="Full log as text").first.click()
    page.wait_for_url("**/logs/**")
    shown = page.locator("body").inner_text()
    assert "step 0" in shown
    assert FIRST in shown


def test_a_link_to_a_line_of_a_log_opens_at_this_line(page: Page) -> None:
    page.goto("/failures?side=hardware")
    page.locator("table.failures tbody a").first.click()
    page.get_by_role("link", name="Open the log with search").first.click()
    page.locator(".jumps a").first.click()
    expect(page).to_have_url(re.compile("#L"))
    page.goto(page.url)  # as a colleague who got the link
    marked = page.locator("tr:target")
    assert FIRST in marked.inner_text()
    assert marked.evaluate("row => row.getBoundingClientRect().top < window.innerHeight")


def test_the_evidence_opens_the_log_at_its_line_and_the_link_is_copied(browser: Browser, site: str) -> None:
    with tab(browser, site, permissions=["clipboard-read", "clipboard-write"]) as made:
        made.goto("/failures?side=hardware")
        made.locator("table.failures tbody .what a").first.click()
        made.locator(".evidence tr.initiating .where a").first.click()
        expect(made).to_have_url(re.compile(r"/lines\?line=\d+#L\d+$"))
        made.get_by_role("button", name="Copy link").click()
        expect(made.get_by_role("button", name="Copied")).to_be_visible()
        assert made.evaluate("navigator.clipboard.readText()") == made.url
        assert FIRST in made.locator("tr:target").inner_text()


def test_the_message_for_the_owner_and_the_link_are_copied_with_one_click(browser: Browser, site: str) -> None:
    with tab(browser, site, permissions=["clipboard-read", "clipboard-write"]) as made:
        made.goto("/failures?side=user")
        made.locator("table.failures tbody .what a").first.click()
        made.get_by_role("button", name="Copy message").click()
        expect(made.get_by_role("button", name="Copied")).to_be_visible()
        assert made.evaluate("navigator.clipboard.readText()").startswith("Your job orion / ")
        made.get_by_role("button", name="Copy link").click()
        expect(made.get_by_role("button", name="Copied")).to_have_count(2)
        assert made.evaluate("navigator.clipboard.readText()") == made.url


def test_a_dead_letter_that_still_can_not_be_read_says_so(page: Page) -> None:
    page.goto("/dead-letters")
    for button in page.get_by_role("button", name="Resend").all():
        assert button.evaluate("one => one.getBoundingClientRect().height") < 45, "one line: the word is not broken"
    page.locator("tr", has_text="{broken").get_by_role("button", name="Resend").click()
    expect_text(page.locator("[role=status]"), "still cannot be read")
    expect(page.locator("tr", has_text="{broken").get_by_role("button")).to_have_count(1)


def test_every_page_fits_without_scripts(browser: Browser, site: str) -> None:
    with tab(browser, site, **Variant(390, scripts=False).context) as made:
        for path in (
            *("/", "/failures", "/groups", "/groups/1", "/feedback", "/dead-letters", "/model", "/settings", "/login"),
            *("/failures?cluster=none", "/failures/1", "/groups?state=muted", "/failures?user=bo", "/account"),
        ):
            made.goto(path)
            assert fits(made), path


def test_j_k_and_enter_go_through_a_list_and_can_be_switched_off(browser: Browser, site: str) -> None:
    with tab(browser, site) as made:
        made.goto("/failures?side=hardware")
        for key in "jjjk":
            made.keyboard.press(key)
        expect(made.locator("tr.here")).to_have_count(1)
        second = made.locator("table.failures .what a").nth(1).get_attribute("href")
        made.keyboard.press("Enter")
        made.wait_for_url(f"**{second}")
        made.go_back()
        made.locator("table.failures .what a").nth(2).focus()
        made.keyboard.press("k")
        expect(made.locator("table.failures .what a").nth(1)).to_be_focused()
        for closing in ("?", "Enter", "Escape"):
            made.keyboard.press("?")
            expect_text(made.get_by_role("dialog"), "next row")
            made.keyboard.press(closing)
            expect(made.get_by_role("dialog")).to_have_count(0)
        made.keyboard.press("/")
        expect(made.locator("#search")).to_be_focused()
        made.keyboard.press("Escape")
        made.keyboard.press("?")
        made.get_by_role("button", name="Switch the keys off").click()
        made.goto("/failures")
        made.keyboard.press("j")
        expect(made.locator("tr.here")).to_have_count(0)


def test_pages_are_reached_by_the_navigation_and_the_period_is_kept(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="last 7 days").click()
    expect(page).to_have_url(re.compile("since=7d"))
    follow(page, "Failures")
    expect(page).to_have_url(re.compile(r"/failures\?since=7d"))
    page.locator(".custom summary").click()
    page.get_by_label("from", exact=True).fill("2026-11-20 08:00")
    page.get_by_label("to", exact=True).fill("2026-11-20 12:00")
    page.get_by_role("button", name="Apply").click()
    expect_text(page.locator(".custom summary"), "11-20 08:00 – 11-20 12:00")
    assert fits(page)
    follow(page, "Overview")
    expect(page).to_have_url(re.compile(r"/\?since=2026-11-20\+08%3A00&until="))
    expect_text(page.locator("h1"), "job attempts failed")


def test_the_keyboard_reaches_the_first_failure(page: Page) -> None:
    page.goto("/failures?side=hardware")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.locator("table.failures .what a:focus").count():
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/failures/*")


def test_logging_in_with_a_pasted_token(browser: Browser, tmp_path: Path) -> None:
    world = make_world(tmp_path, host="0.0.0.0")
    secret = world.token("read")
    with serving(world.app) as address:
        context = browser.new_context(base_url=address, java_script_enabled=False)
        made = context.new_page()
        made.goto("/failures?side=user")
        made.get_by_label("API token").fill("flt_wrong")
        made.get_by_role("button", name="Log in").click()
        expect_text(made.locator("[role=alert]"), "This token is unknown")
        made.get_by_label("API token").fill(secret)
        made.get_by_role("button", name="Log in").click()
        expect(made).to_have_url(re.compile(r"/failures\?side=user$"))
        made.get_by_role("button", name="Log out").click()
        expect(made).to_have_url(re.compile("/login"))
        made.goto("/")
        expect(made).to_have_url(re.compile("/login"))
        context.close()
    world.store.close()


def test_the_legend_hides_a_side_in_all_charts_and_marks_are_numbered(browser: Browser, tmp_path: Path) -> None:
    world = make_world(tmp_path)
    stock(world)
    with world.store.unit_of_work() as work:
        work.repairs.note("orion", "gpu018", at=NOW - timedelta(hours=2), actor="chen", text="riser replaced")
    with serving(world.app) as address, tab(browser, address, viewport={"width": 1440, "height": 900}) as made:
        made.goto("/")
        expect_text(made.locator("ol.marks li"), "repair of gpu018: riser replaced")
        latest = made.locator(".chart .u-over").first
        box = latest.bounding_box()
        assert box is not None
        end = Position(x=box["width"] - 8, y=box["height"] - 8)
        latest.hover(position=end)
        tip = made.locator(".chart .tip").first
        expect_text(tip, "hardware")
        hardware = made.get_by_role("button", name="hardware", exact=True)
        expect(hardware).to_have_attribute("aria-pressed", "true")
        hardware.focus()
        made.keyboard.press("Enter")
        expect(hardware).to_have_attribute("aria-pressed", "false")
        latest.hover(position=end)
        expect_text(tip, "total of those shown")
        assert "hardware" not in tip.inner_text()
        hardware.click()
        latest.hover(position=end)
        expect_text(tip, "hardware")
    world.store.close()


def test_the_legend_is_text_without_scripts(browser: Browser, site: str) -> None:
    with tab(browser, site, java_script_enabled=False) as made:
        made.goto("/")
        expect_text(made.locator(".over-time .legend"), "hardware")
        assert made.locator(".over-time .legend button").count() == 0


def test_failures_are_gone_through_one_by_one(page: Page) -> None:
    page.goto("/failures?side=hardware")
    page.locator("table.failures tbody .what a").nth(1).click()
    here = page.url
    page.get_by_role("link", name="older").click()
    expect(page).not_to_have_url(here)
    expect(page).to_have_url(re.compile("side=hardware"))
    expect(page.locator(".answer .side")).to_have_text("hardware")
    assert fits(page)
    page.get_by_role("link", name="newer").click()
    expect(page).to_have_url(here)
    page.get_by_role("link", name="filtered list").click()
    expect(page).to_have_url(re.compile("/failures\\?side=hardware$"))
    page.go_back()
    page.get_by_role("link", name="Failures", exact=True).last.click()
    expect(page).to_have_url(re.compile("/failures$"))
