"""A log of 100,000 lines in Chromium: scrolled as a whole with few rows in the page, and in pages without scripts."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from service.web import views
from tests.flows.chromium import fits, tab
from tests.flows.every_page.test_axe import TAGS, violations
from tests.service.web.live import serving
from tests.service.web.world import event, lines, log, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
WIDE = "wide line " + 40 * "123456\t"  # wrapped, and lower than computed: tabs take one to eight columns
LINES, WIDE_AT, XID_AT, END = 100_000, range(49_900, 49_990), 70_000, "RuntimeError: CUDA error"
MOST_ROWS = 300  # of the table at any time
# What one sees: the numbers of the rows in the window below the bar, their texts, and whether they follow each other.
SEEN = """() => {
  const bar = document.querySelector(".log-bar"), sticky = getComputedStyle(bar).position === "sticky";
  const limit = (sticky ? bar : bar.querySelector(".log-nav")).getBoundingClientRect().bottom;
  const rows = [...document.querySelectorAll(".wide tr")].map((row) => [row, row.getBoundingClientRect()]);
  return rows.filter(([, at]) => at.bottom > limit + 2 && at.top < innerHeight - 1)
    .map(([row, at]) => [Number(row.id.slice(1)), row.querySelector("code").textContent, at.top, at.bottom]);
}"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def text_of(number: int) -> str:
    """The text of a line, from 1."""
    if number == XID_AT:
        return XID
    if number == LINES:
        return END
    return WIDE if number in WIDE_AT else f"{number % 100:02}"[:1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The address of the service, the path of the long log, and that of one with twelve lines."""
    world = make_world(tmp_path_factory.mktemp("site"))
    texts = ["\n".join(map(text_of, range(1, LINES + 1))), "\n".join([*map(str, range(11)), XID])]
    paths = []
    with world.client() as client:
        for job, text in enumerate(texts, 1):
            sent = lines(event(str(job), logs=[log(text, 1), log("ncclRemoteError Error", 0)]))
            assert client.post("/api/v1/events", content=sent).json()["accepted"] == 1
            attempt = views.failure(world.services, job).logs[0].attempt_id
            paths.append(f"/failures/{job}/logs/{attempt}/0/lines")
    with serving(world.app) as address:
        yield address, *paths
    world.store.close()


@pytest.fixture(params=[1440, 390])
def page(request: pytest.FixtureRequest, browser: Browser, site: tuple[str, ...]) -> Iterator[Page]:
    context = {"permissions": ["clipboard-read", "clipboard-write"]}
    with tab(browser, site[0], viewport={"width": request.param, "height": 900}, **context) as made:
        yield made


def opened(page: Page, path: str) -> None:
    """Open the log and wait until all of its lines are there."""
    page.goto(path)
    expect(page.locator(".log.scripted")).to_be_visible()


def seen(page: Page) -> list[int]:
    """The numbers of the lines in the window, each with its own text and directly below the line before."""
    return list(places(page))


def places(page: Page) -> dict[int, float]:
    """The lines in the window with their distances from its upper edge; checked as in `seen`."""
    page.evaluate(FRAMES)
    rows = page.evaluate(SEEN)
    assert rows, "the window is empty"
    assert page.locator(".wide tr").count() <= MOST_ROWS
    for number, text, _, _ in rows:
        assert text == text_of(number)
    for (number, _, _, bottom), (following, _, top, _) in pairwise(rows):
        assert following == number + 1
        assert abs(top - bottom) < 1
    return {row[0]: row[2] for row in rows}


def test_the_right_lines_are_at_the_right_places_from_the_first_to_the_last(page: Page, site: tuple[str, ...]) -> None:
    opened(page, site[1])
    assert seen(page)[0] == 1
    height = page.evaluate("document.documentElement.scrollHeight")
    for share in (0.25, 0.5, 0.75, 0.1):  # as with a dragged scroll bar
        page.evaluate("(top) => window.scrollTo(0, top)", height * share)
        assert abs(seen(page)[0] - share * LINES) < 0.02 * LINES
    page.keyboard.press("End")
    page.wait_for_function("() => scrollY + innerHeight >= document.documentElement.scrollHeight - 1")
    assert seen(page)[-1] == LINES
    page.keyboard.press("Home")
    page.wait_for_function("() => scrollY === 0")
    assert seen(page)[0] == 1
    assert page.locator(".pages").count() == 0
    assert fits(page)


@pytest.mark.parametrize(("begin", "step"), [(49_800, 400), (50_050, -400)])
def test_lines_move_as_far_as_one_scrolls_also_past_wrapped_ones(
    page: Page, site: tuple[str, ...], begin: int, step: int
) -> None:
    opened(page, f"{site[1]}?line={begin}#L{begin}")
    before, passed = places(page), set[int]()
    for _ in range(40):
        page.evaluate("(step) => window.scrollBy({ top: step, behavior: 'instant' })", step)
        now = places(page)
        stayed = set(now) & set(before)
        assert stayed, "a step is less than a window"
        assert {round(before[number] - now[number]) for number in stayed} == {step}
        before = now
        passed |= set(now)
    assert passed & set(WIDE_AT)


def test_a_link_to_a_line_beyond_the_first_page_opens_there_and_is_copied(page: Page, site: tuple[str, ...]) -> None:
    opened(page, f"{site[1]}?line=54321#L54321")
    assert 54_321 in seen(page)
    expect(page.locator("tr[aria-current]")).to_have_id("L54321")
    page.get_by_role("link", name="54325", exact=True).click()
    expect(page).to_have_url(re.compile(r"/lines\?line=54325#L54325$"))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    page.go_back()
    expect(page.locator("tr[aria-current]")).to_have_id("L54321")
    opened(page, copied)
    assert 54_325 in seen(page)
    expect(page.locator("tr[aria-current]")).to_have_id("L54325")


def test_evidence_is_reached_by_links_buttons_and_keys(page: Page, site: tuple[str, ...]) -> None:
    opened(page, site[1])
    page.locator(".jumps").get_by_role("link", name="70,000").click()
    assert XID_AT in seen(page)
    row = page.locator("tr[aria-current]")
    expect(row).to_have_id(f"L{XID_AT}")
    expect(row).to_contain_text("initiating")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("tr[aria-current]")).to_have_id(f"L{LINES}")
    assert LINES in seen(page)
    page.keyboard.press("k")
    expect(page.locator("tr[aria-current]")).to_have_id(f"L{XID_AT}")
    expect(page.get_by_role("status")).to_have_text("evidence 1 of 2")
    assert XID_AT in seen(page)


def test_a_search_goes_from_one_line_to_the_next_and_marks_the_words(page: Page, site: tuple[str, ...]) -> None:
    opened(page, site[1])
    page.get_by_label("find in this log").fill("WIDE line")
    page.get_by_label("find in this log").press("Enter")
    expect(page.locator("tr[aria-current]")).to_have_id(f"L{WIDE_AT.start}")
    expect(page.get_by_role("status")).to_have_text(f"found line 1 of {len(WIDE_AT)}")
    assert page.locator("tr[aria-current] mark").count() == 1
    page.get_by_label("find in this log").press("Enter")
    expect(page.locator("tr[aria-current]")).to_have_id(f"L{WIDE_AT.start + 1}")
    assert WIDE_AT.start + 1 in seen(page)
    page.get_by_label("find in this log").fill("nowhere")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_role("status")).to_have_text("no line contains this")


def test_long_lines_are_wrapped_or_not_at_the_same_place(page: Page, site: tuple[str, ...]) -> None:
    opened(page, f"{site[1]}?line=49950#L49950")
    first = seen(page)[0]
    page.get_by_role("link", name="Do not wrap lines").click()
    expect(page).to_have_url(re.compile(r"wrap=no#L49950$"))
    assert seen(page)[0] == first
    assert page.locator("#L49950").evaluate("row => row.getBoundingClientRect().height") < 30
    page.get_by_role("link", name="Wrap lines", exact=True).click()
    assert seen(page)[0] == first


def test_a_log_of_one_page_keeps_all_of_its_rows(page: Page, site: tuple[str, ...]) -> None:
    opened(page, site[2])
    assert page.locator(".wide tr").count() == 12
    page.keyboard.press("j")
    expect(page.locator("tr[aria-current]")).to_have_id("L12")
    expect(page).to_have_url(re.compile("line=12#L12$"))


def test_without_scripts_pages_lead_through_the_log(browser: Browser, site: tuple[str, ...]) -> None:
    with tab(browser, site[0], viewport={"width": 390, "height": 900}, java_script_enabled=False) as made:
        made.goto(f"{site[1]}?line=70000#L70000")
        assert XID in made.locator("tr:target").inner_text()
        made.get_by_role("link", name="Later lines").first.click()
        expect(made.locator(".wide tr").first).to_have_id("L70001")
        assert fits(made)


def test_a_log_that_is_not_sent_again_stays_in_pages(browser: Browser, site: tuple[str, ...]) -> None:
    with tab(browser, site[0]) as made:
        made.route("**/lines.json", lambda route: route.fulfill(status=204))
        made.goto(site[1])
        made.get_by_role("link", name="Later lines").first.click()
        expect(made.locator(".wide tr").first).to_have_id("L1001")


def test_a_window_that_becomes_narrow_shows_the_same_lines(browser: Browser, site: tuple[str, ...]) -> None:
    with tab(browser, site[0], viewport={"width": 1440, "height": 900}) as made:
        opened(made, f"{site[1]}?line=49950#L49950")
        before = seen(made)
        made.set_viewport_size({"width": 390, "height": 900})
        made.wait_for_function("() => document.querySelector('#L49950').getBoundingClientRect().height > 200")
        assert abs(seen(made)[0] - before[0]) <= 1


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_axe_finds_nothing_in_the_middle_of_a_long_log(
    browser: Browser, site: tuple[str, ...], width: int, scheme: Literal["light", "dark"]
) -> None:
    with tab(browser, site[0], viewport={"width": width, "height": 900}, color_scheme=scheme) as made:
        opened(made, f"{site[1]}?line={XID_AT}&q=GPU#L{XID_AT}")
        first = seen(made)[0]
        assert XID_AT > first > XID_AT - 50
        # No number is half hidden below the bar, which would be too small a target.
        made.evaluate("(line) => scrollBy(0, document.getElementById(line).getBoundingClientRect().top)", f"L{first}")
        bars = "[...document.querySelectorAll('.log-bar, .log-nav')].map((bar) => bar.getBoundingClientRect().bottom)"
        hidden = max(made.evaluate(bars))
        made.evaluate("(height) => scrollBy(0, -height)", hidden)
        assert not violations(made, {"runOnly": {"type": "tag", "values": TAGS}})
        assert fits(made)
