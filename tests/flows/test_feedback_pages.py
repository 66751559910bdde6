"""Feedback on pages, in Chromium: confirm, label, contest and resolve verdicts, and see new failures appear."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from service.feedback.records import FeedbackInput, Labels
from tests.flows.chromium import expect_text, fits, main_text, tab
from tests.service.web.live import serving
from tests.service.web.stored_layers import LAYER, add_layer
from tests.service.web.test_undo import group_of
from tests.service.web.world import BY_WORD, NOW, OPEN, World, event, lines, log, make_world

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]
ODD = "SomethingError: nobody has seen this before"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Five missing modules, a lost GPU whose second attempt succeeded on another node, and three unknown failures."""
    made = make_world(tmp_path)
    xid = log("2026-11-20T11:20:01Z step 41\n2026-11-20T11:25:00Z NVRM: Xid 79, GPU has fallen off the bus.", 1)
    point = {"uri": "s3://runs/7", "step": 41_200, "at": (NOW - timedelta(hours=1)).isoformat()}
    kernel = {"at": (NOW - timedelta(minutes=36)).isoformat(), "node": "gpu018", "source": "kernel", "text": "Xid 79"}
    again = event("lost", attempt=1, status="succeeded", logs=[], nodes=["gpu020"], ended_at=NOW.isoformat())
    events = [event(f"module{number}", user=f"user{number}") for number in range(5)]
    events += [event("lost", logs=[xid], checkpoint=point, node_events=[kernel]), again]
    events += [event(f"odd{n}", gpus=64, nodes=[f"gpu09{n}"], logs=[log(ODD, node=f"gpu09{n}")]) for n in range(3)]
    with made.client() as client:
        assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    yield made
    made.store.close()


@pytest.fixture(params=[(1440, True), (390, False)], ids=["1440px-js", "390px-nojs"])
def page(request: pytest.FixtureRequest, browser: Browser, world: World) -> Iterator[Page]:
    width, scripts = request.param
    with (
        serving(world.app) as address,
        tab(browser, address, viewport={"width": width, "height": 900}, java_script_enabled=scripts) as made,
    ):
        yield made


def open_failure(page: Page, words: str) -> None:
    page.goto("/failures")
    page.get_by_role("link", name=words).first.click()
    page.wait_for_url("**/failures/*")


def test_two_people_looking_at_different_versions_do_not_overwrite_each_other(page: Page, world: World) -> None:
    open_failure(page, "flash_attn")
    number = int(urlsplit(page.url).path.rpartition("/")[2])
    with world.client() as client:
        client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "correct", "cause": "USER.3"})
    answer = page.request.post(f"/failures/{number}/feedback", form={"kind": "confirm", "version": "1"})
    assert answer.status == 403, "a form of ours carries its token"
    with world.client() as client:
        result = client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "confirm", "version": 1})
    assert result.status_code == 409


def test_an_owner_s_objection_is_queued_until_somebody_judges(page: Page) -> None:
    open_failure(page, "flash_attn")
    page.get_by_text("Contest…").click()
    page.get_by_label("why it is wrong").fill("it is in the image")
    page.get_by_role("button", name="Contest", exact=True).click()
    expect_text(page.locator("[role=status]").first, "objection")
    page.goto("/feedback")
    expect_text(page.locator("table.queue"), "it is in the image")
    assert fits(page)
    page.get_by_role("button", name="Confirm verdict").click()
    expect_text(page.locator("main"), "No failure is waiting")


def test_groups_are_resolved_muted_given_over_merged_and_split(page: Page) -> None:
    page.goto("/groups")
    rows = page.locator("table.groups tbody tr")
    expect(rows).to_have_count(3)
    for text in ("flash_attn", "SomethingError"):
        page.locator("table.groups tbody tr", has_text=text).get_by_role("checkbox").check()
    page.get_by_role("button", name="Resolve").click()
    expect_text(page.locator("[role=status]"), "Resolved")
    page.goto("/groups?state=resolved")
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="flash_attn").first.click()
    page.get_by_role("button", name="Reopen").click()
    page.get_by_text("Assign…").click()
    page.get_by_label("assignee").fill("ana")
    page.get_by_role("button", name="Assign", exact=True).click()
    expect_text(page.locator(".jobline"), "with ana")
    page.get_by_label("comment").fill("seen <b>before</b>")
    page.get_by_role("button", name="Add comment").click()
    expect_text(page.locator(".notes"), "seen <b>before</b>")
    page.get_by_text("Mute…").click()
    page.get_by_role("button", name="Mute", exact=True).click()
    expect_text(page.locator(".jobline"), "muted until")
    expect(page.locator(".jobline")).not_to_contain_text(": muted")
    page.get_by_text("Split…").click()
    page.locator("select[name=value]").select_option("user: user1")
    page.get_by_role("button", name="Split off").click()
    expect_text(page.locator("main"), "Split off manually: failures with user user1")
    page.goto("/groups")
    expect(rows).to_have_count(4)
    assert fits(page)


def test_a_group_is_resolved_on_the_board(page: Page) -> None:
    page.goto("/groups")
    page.get_by_role("link", name="Board").click()
    page.wait_for_url("**/groups?view=board")
    column = page.get_by_role("region", name="new")
    expect(column.locator(".card")).to_have_count(3)
    assert fits(page)
    column.locator(".card", has_text="flash_attn").get_by_role("checkbox").check()
    page.get_by_role("button", name="Resolve").click()
    expect_text(page.locator("[role=status]").first, "Resolved")
    expect_text(page.get_by_role("region", name="resolved"), "flash_attn")
    expect(column.locator(".card")).to_have_count(2)
    page.get_by_role("region", name="resolved").get_by_role("link", name="flash_attn").click()
    page.wait_for_url("**/groups/*")


def test_the_keys_walk_over_the_cards_of_the_board(page: Page) -> None:
    page.goto("/groups?view=board")
    if page.evaluate("typeof window.htmx") == "undefined":
        return
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.locator(".card.here")
    expect(chosen).to_have_count(1)
    expect(chosen.locator(".what a")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups/*")


def test_the_label_of_a_group_is_given_and_undone_in_place(page: Page, world: World) -> None:
    page.goto("/groups")
    page.get_by_role("link", name="flash_attn").first.click()
    page.wait_for_url("**/groups/*")
    page.locator("form.judge select").select_option("SYS.5")
    page.get_by_role("button", name="Label the group").click()
    expect_text(page.locator("[role=status]").first, "are labelled")
    expect_text(page.locator(".sure"), "labelled by a person")
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect_text(page.locator("[role=status]").last, "from 5 failures. Their previous verdicts apply again.")
    expect(page.locator(".sure")).not_to_contain_text("labelled by a person")
    with world.client() as client:
        causes = {one["cause"] for one in client.get("/api/v1/failures?user=user1").json()["items"]}
    assert causes == {"USER.1"}
    assert fits(page)


def test_an_earlier_label_of_a_group_is_undone_from_the_list_of_its_labels(page: Page, world: World) -> None:
    group = int(group_of(world.client(), "flash_attn")["id"])
    for who, cause in (("ana", "SYS.5"), ("bob", "USER.4")):
        world.clock.at += timedelta(minutes=1)
        world.services.feedback.add_to_group(group, who, FeedbackInput("correct", Labels(cause=cause)))
    page.goto(f"/groups/{group}")
    rows = page.locator(".labels tbody tr")
    expect(rows).to_have_count(2)
    rows.filter(has_text="ana").get_by_role("button", name="Undo").click()
    kept = "5 failures keep their label, because they were judged again later."
    expect_text(page.locator("[role=status]").last, kept)
    expect(rows).to_have_count(1)
    expect_text(rows.first, "bob")
    assert fits(page)


def test_a_failure_says_when_what_who_else_and_what_helped_others(page: Page, world: World) -> None:
    with world.client() as client:
        client.post(
            "/api/v1/events", content=lines(event("lost2", logs=[log("NVRM: Xid 79, GPU has fallen off the bus.", 1)]))
        )
    open_failure(page, "GPU fell off the bus")
    text = main_text(page)
    assert "Nearest resolved failure of the same group" in text
    assert "on other nodes, without gpu018" in text
    assert "Other failures on gpu018, within a week" in text
    page.goto("/failures?q=xid")
    page.locator("table.failures a").last.click()
    page.get_by_text("Show as table").first.click()
    result = page.locator(".figures", has_text="last checkpoint at step 41,200").inner_text()
    assert [word for word in ("submitted", "started", "last checkpoint", "Xid 79", "ended: failed") if word in result][
        1:
    ]
    assert "initiating" in result
    assert fits(page)


def test_a_failure_of_the_user_is_worded_so_that_it_can_be_sent(page: Page) -> None:
    open_failure(page, "flash_attn")
    owner = page.locator(".owner")
    assert "differ in libraries" in owner.inner_text()
    owner.get_by_text("Message to send").click()
    output = owner.locator("pre").inner_text()
    assert "Your job orion / module" in output
    assert "No module named 'flash_attn'" in output
    assert "Resubmit" not in page.locator(".answer .do strong").inner_text().replace("Do not resubmit", "")


def test_the_audit_shows_no_verdict_before_it_is_judged(page: Page, world: World) -> None:
    world.clock.at += timedelta(days=7)
    assert world.services.feedback.draw() == 9
    page.goto("/feedback")
    page.locator(".sample a").first.click()
    page.wait_for_url("**/feedback/audit/**")
    text = main_text(page)
    assert "sure" not in text
    expect(page.locator(".initiating")).to_have_count(0)
    page.locator("select[name=cause]").select_option("USER.1")
    page.get_by_role("button", name="Submit").click()
    expect_text(page.locator("[role=status]"), "Audit answer saved. Thank you.")
    page.goto("/feedback")
    expect_text(page.locator("main"), "1 of 9 audited")


@pytest.mark.parametrize("path", ["/", "/failures"])
def test_new_failures_are_offered_as_they_come(browser: Browser, world: World, path: str) -> None:
    with serving(world.app) as address, tab(browser, address) as made:
        made.goto(path)
        before = made.locator("table.failures").last.inner_text()
        for key in "jjx":
            made.keyboard.press(key)
        read = made.locator("tr.here .what a").get_attribute("href")
        place = made.locator("table.failures").last.bounding_box()
        with world.client() as client:
            client.post("/api/v1/events", content=lines(event("fresh"), event("fresher")))
        offer = made.get_by_role("link", name="2 new failures, show")
        expect(offer).to_be_visible()
        assert made.locator("table.failures").last.inner_text() == before, "tables stand still"
        assert made.locator("table.failures").last.bounding_box() == place, "the offer moves nothing"
        offer.click()
        expect_text(made.locator("table.failures").last, "fresher")
        expect(made.locator("#main")).to_be_focused()
        if path == "/failures":
            expect(made.locator("tr.here .what a")).to_have_attribute("href", read or "")
            expect(made.locator("tr.here input")).to_be_checked()
            expect_text(made.locator("[data-ticked]"), "1 selected:")


def test_a_judgement_is_sent_in_place_and_undone(browser: Browser, world: World) -> None:
    with serving(world.app) as address, tab(browser, address, viewport={"width": 1440, "height": 500}) as made:
        open_failure(made, "flash_attn")
        made.get_by_text("Message to send").click()
        confirm = made.get_by_role("button", name="Confirm", exact=True)
        confirm.scroll_into_view_if_needed()
        before = made.evaluate("scrollY")
        confirm.click()
        toast = made.locator("#toasts [role=status]")
        expect_text(toast, "Verdict confirmed")
        assert "notice" not in made.url
        assert abs(made.evaluate("scrollY") - before) < 2, "the page stands still"
        assert made.locator(".owner pre").is_visible(), "what was open stays open"
        toast.get_by_role("button", name="Undo").click()
        expect_text(toast, "Undone.")
        expect(made.locator(".sure")).not_to_contain_text("A person set")
        made.get_by_role("button", name="Hold", exact=True).click()
        expect_text(toast, "Held.")
        toast.get_by_role("button", name="Undo").click()
        expect_text(toast, "Automation may resubmit the job again.")
        toast.get_by_role("button", name="Close").click()
        expect(toast).to_have_count(0)


def test_a_new_incident_is_shown_and_times_go_on(browser: Browser, world: World) -> None:
    with serving(world.app) as address, tab(browser, address) as made:
        made.clock.install()
        with made.expect_response("**/live?**"):
            made.goto("/")
        made.clock.run_for(1_000)
        time = made.locator("table.failures time").first
        was = time.inner_text()
        made.wait_for_timeout(2_500)  # until the stream knows which incidents are open
        shared = {"cluster": "orion", "kind": "file_system", "value": "/scratch"}
        with world.client() as client:
            assert client.post("/api/v1/incidents", json=shared).status_code in {200, 201}
        expect_text(made.locator("#toasts [role=alert]"), "New incident")
        made.clock.run_for(3_600_000 * 5)
        expect(time).not_to_have_text(was)


def test_the_answer_of_the_gate_is_read_and_a_model_is_rolled_back(page: Page, world: World) -> None:
    add_layer(world)
    page.goto("/model")
    page.get_by_role("link", name="what the labels of this site changed").click()
    page.get_by_role("link", name=LAYER).click()
    expect(page.locator("h1")).to_have_text(
        "The gate asks: a person has to promote the candidate.", use_inner_text=True
    )
    expect_text(page.locator(".reasons"), "a second person has to agree")
    expect_text(page.locator("table.changed"), "flexnet: no seat left")
    assert fits(page)
    page.get_by_label("reason").fill("checked all labels")
    page.get_by_role("button", name="Promote").click()
    expect_text(page.locator("[role=status]").first, "within ten seconds")
    expect_text(page.locator("main"), "This layer is in use.")
    page.get_by_role("button", name="Roll back").click()
    expect_text(page.locator("[role=status]").first, "Rolled back")
    expect(page.locator("table.layers strong")).to_have_count(0)
    expect_text(page.locator("table.promotions"), "checked all labels")
    assert fits(page)


def test_ten_groups_are_labelled_by_the_keyboard_alone(
    page: Page, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        monkeypatch.setitem(BY_WORD, f"Odd{number}Error", replace(OPEN, fingerprint=f"1:odd{number}"))
    odd = [event(f"key{number}", gpus=99, logs=[log(f"Odd{number}Error: never seen")]) for number in range(10)]
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*odd))
    page.goto("/feedback/next")
    assert fits(page)
    expect(page.locator("details.log .text").first).to_be_visible()  # no pointer is needed to read the log
    for _ in range(10):
        expect(page.locator("select[name=cause]")).to_be_focused()
        page.keyboard.type("Buggy")
        page.keyboard.press("Tab")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect_text(page.locator("[role=status]").first, "are labelled. Group")
    expect_text(page.locator("main"), "10 of 10 groups labelled this week: done")
    assert fits(page)


def test_ten_failures_are_selected_and_corrected_by_the_keyboard_alone(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = make_world(tmp_path_factory.mktemp("ten"))
    with made.client() as client:
        sent = client.post("/api/v1/events", content=lines(*(event(f"m{n}") for n in range(12)))).json()
    assert sent["accepted"] == 12
    with serving(made.app) as address, tab(browser, address, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/failures")
        for _ in range(11):
            page.keyboard.press("j")
            page.keyboard.press("x")
        page.keyboard.press("x")
        expect_text(page.locator("[data-ticked]"), "10 selected:")
        page.keyboard.press("a")
        expect(page.get_by_role("button", name="Confirm verdicts")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.type("Improper")
        for _ in range(3):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect_text(page.locator("#toasts [role=status]"), "10 verdicts corrected.")
        expect(page.locator("td.cause", has_text="Improper Permission")).to_have_count(10)
        page.keyboard.press("?")
        expect_text(page.get_by_role("dialog", name="Keyboard"), "select the row")
    made.store.close()


def test_an_administrator_creates_a_token_and_uses_it(page: Page, world: World) -> None:
    page.goto("/settings")
    page.get_by_text("Create a token…").click()
    page.get_by_label("name", exact=True).fill("board")
    page.get_by_role("checkbox", name="admin").check()
    assert fits(page)
    page.get_by_role("button", name="Create", exact=True).click()
    expect_text(page.locator("#tokens .created"), "The token board is created.")
    assert fits(page)
    secret = page.locator("#tokens .created code").inner_text()
    with world.client(secret) as client:
        assert client.get("/api/v1/audit-log?what=token.made").json()["items"][0]["subject"] == "token/board"
    page.goto("/settings")
    page.get_by_label("API token").fill(secret)
    page.get_by_role("button", name="Log in with a token").click()
    expect(page.locator("table.tokens tbody tr", has_text="board")).to_have_count(1)
    assert fits(page)
