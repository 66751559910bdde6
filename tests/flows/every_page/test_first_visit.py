"""What an operator, a lead and an owner find when they open the pages, in Chromium: lists, forms and reports."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect

from classifiers.contracts import ChainStep
from tests.flows.chromium import VARIANTS, Variant, expect_text, fits, tab
from tests.service.web.live import serving
from tests.service.web.world import BY_WORD, NOW, event, lines, log, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

PHONE = {"width": 390, "height": 844}
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
LAST_WEEK = "/reports/2026-W46"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    world = make_world(tmp_path_factory.mktemp("site"))
    ended = (NOW - timedelta(days=7)).isoformat()
    times = {"started_at": (NOW - timedelta(days=7, hours=3)).isoformat(), "ended_at": ended}
    jobs = [event(str(number), user=f"u{number % 3}", **times) for number in range(20)]
    chain = (
        ChainStep("beginning", XID, rank=1, node="gpu018", lines=1),
        *(ChainStep("consequence", XID, title=f"Consequence {n}", ranks=n, after_s=4.0) for n in range(2, 6)),
        ChainStep("end", "failed, exit code 1"),
    )
    jobs.append(event("x", logs=[log(XID, 1), log("RuntimeError: peer lost", 0)]))
    with world.client() as client, pytest.MonkeyPatch.context() as patch:
        patch.setitem(BY_WORD, "Xid", replace(BY_WORD["Xid"], chain=chain))
        assert client.post("/api/v1/events", content=lines(*jobs)).json()["accepted"] == len(jobs)
    with serving(world.app) as address:
        yield address
    world.store.close()


def test_actions_wait_until_something_is_selected(browser: Browser, site: str) -> None:
    with tab(browser, site, viewport={"width": 1440, "height": 600}) as page:
        for path, name in (("/failures", "Confirm verdicts"), ("/groups", "Resolve")):
            page.goto(path)
            act = page.get_by_role("button", name=name)
            expect(act).to_be_disabled()
            page.locator("td.tick input").first.check()
            expect(act).to_be_enabled()
            expect(act).to_be_in_viewport()
            page.locator("td.tick input").first.uncheck()
            expect(act).to_be_disabled()
    with tab(browser, site, java_script_enabled=False) as page:
        page.goto("/groups")
        expect(page.get_by_role("button", name="Resolve")).to_be_enabled()


def test_a_list_of_groups_has_the_numbers_that_merging_asks_for(browser: Browser, site: str) -> None:
    with tab(browser, site) as page:
        page.goto("/groups")
        row = page.locator("table.groups tbody tr").first
        number = row.locator(".number").inner_text()
        assert row.locator(".what a").get_attribute("href") == f"/groups/{number}"
        page.get_by_role("searchbox").fill(f"group {number}")
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{site}/groups/{number}")
        expect_text(page.locator(".jobline"), f"group {number}")


def test_a_form_that_waits_for_its_answer_shows_it(browser: Browser, site: str) -> None:
    with tab(browser, site) as page:
        page.goto("/failures/1")
        main = page.locator("main")
        expect(main).not_to_have_attribute("aria-busy", "true")
        page.evaluate("""() => {
          window.seen = [];
          new MutationObserver(() => window.seen.push(document.querySelector("main").getAttribute("aria-busy")))
            .observe(document.querySelector("main"), { attributeFilter: ["aria-busy"] });
        }""")
        page.get_by_role("button", name="Confirm", exact=True).click()
        expect_text(page.locator("#toasts [role=status]"), "Verdict confirmed")
        assert page.evaluate("window.seen")[0] == "true"
        expect(main).not_to_have_attribute("aria-busy", "true")


def test_time_ranges_take_one_line_on_a_phone_and_keep_their_names(browser: Browser, site: str) -> None:
    with tab(browser, site, viewport=PHONE) as page:
        page.goto("/failures")
        box = page.locator(".range").bounding_box()
        assert box is not None
        assert box["height"] < 45
        expect(page.get_by_role("link", name="last 7 days")).to_be_visible()
        assert fits(page)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_phone_shows_the_first_evidence_line_without_scrolling(browser: Browser, site: str, *, scripts: bool) -> None:
    with tab(browser, site, viewport=PHONE, java_script_enabled=scripts) as page:
        page.goto("/failures?side=hardware")
        page.locator("table.failures .what a").first.click()
        expect(page.locator("ol.chain li")).to_have_count(6)
        expect(page.locator("tr.initiating code").first).to_be_in_viewport()
        assert fits(page)


def test_signatures_do_not_scroll_sideways_on_a_phone(browser: Browser, site: str) -> None:
    with tab(browser, site, viewport=PHONE) as page:
        page.goto("/signatures")
        row = page.locator("table.signatures tbody tr").first
        expect_text(row, "20 failures")
        assert fits(page)
        too_wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        assert page.locator("main table.signatures, main .wide").evaluate_all(too_wide) == 0
        row.get_by_role("link", name="20").click()
        expect(page.locator("table.failures tbody tr")).to_have_count(20)
        assert fits(page)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_long_table_of_a_report_begins_with_what_is_most_frequent(
    browser: Browser, site: str, variant: Variant
) -> None:
    with tab(browser, site, **variant.context) as page:
        page.goto(LAST_WEEK)
        expect_text(page.locator(".lead"), "20 of 20 jobs failed")
        rows = page.locator("#causes tbody tr")
        assert rows.first.inner_text().startswith("USER.1")
        expect(page.locator("#causes tbody tr:visible")).to_have_count(10)
        page.locator("#causes summary").click()
        expect(page.locator("#causes tbody tr:visible")).to_have_count(22)
        assert fits(page)
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
        assert page.locator(".report .wide").evaluate_all(cut) == [], "no table is cut on a phone"
        figure = page.locator("figure", has=page.get_by_text("Goodput per week"))
        expect(figure.get_by_role("img", name="Goodput per week")).to_be_visible()
        last = page.locator("#goodput_trend tbody tr").last.locator("td").all_inner_texts()
        assert figure.locator(".axis span").last.inner_text().split(maxsplit=1) == [last[0][5:], last[2]]
        page.get_by_role("link", name="Goodput by week").click()
        expect(page.locator("#goodput_trend")).to_be_in_viewport()
        page.goto("/goodput?since=28d")
        assert page.locator(".wide:has(table.labelled)").evaluate_all(cut) == []


def test_lines_of_evidence_are_aligned_below_or_beside_their_places(browser: Browser, site: str) -> None:
    with tab(browser, site) as page:
        page.goto("/failures?side=hardware")
        page.locator("table.failures .what a").first.click()
        expect(page.locator("table.evidence")).to_be_visible()
        for width, below in ((1280, True), (1920, False)):
            page.set_viewport_size({"width": width, "height": 900})
            place, text = (
                page.locator(f"table.evidence tr.initiating .{name} :is(a, code)") for name in ("where", "text")
            )
            first, second = place.first.bounding_box(), text.first.bounding_box()
            assert first is not None
            assert second is not None
            assert (second["y"] >= first["y"] + first["height"] - 1) is below
            assert (second["x"] == first["x"]) is below


def test_the_columns_of_ranks_without_times_stand_above_their_names(browser: Browser, site: str) -> None:
    with tab(browser, site) as page:
        page.goto("/failures?side=hardware")
        page.locator("table.failures .what a").first.click()
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900})
            dot = page.locator(".ranks-chart g.cascade circle").bounding_box()
            name = page.locator(".of-roles").get_by_text("affected").bounding_box()
            assert dot is not None
            assert name is not None
            assert abs(dot["x"] + dot["width"] / 2 - name["x"] - name["width"] / 2) < 6
        page.locator(".spread summary").click()
        page.locator("#ranks").get_by_role("link", name="1", exact=True).click()
        expect_text(page.locator("h1"), "Rank 1")


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_table_is_cut(browser: Browser, site: str, width: int) -> None:
    with tab(browser, site, viewport={"width": width, "height": 900}) as page:
        cut = "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"
        for path in (LAST_WEEK, "/model", "/"):
            page.goto(path)
            expect(page.locator("main .wide").first).to_be_attached()
            assert page.locator("main .wide:has(table.labelled)").evaluate_all(cut) == [], path
            assert fits(page), path


def test_a_setting_has_the_whole_width_of_a_phone(browser: Browser, site: str) -> None:
    with tab(browser, site, viewport=PHONE) as page:
        page.goto("/settings")
        row = page.locator("table.figures tr", has=page.get_by_text("database_url"))
        name, value = row.locator("th").bounding_box(), row.locator("td").bounding_box()
        assert name is not None
        assert value is not None
        assert value["x"] == name["x"]
        assert value["y"] >= name["y"] + name["height"]
        assert fits(page)
