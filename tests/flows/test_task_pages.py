"""Tasks of operators and owners, each in Chromium on desktop and phone, with and without scripts."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.flows.chromium import VARIANTS, Variant, expect_text, fits, follow, tab
from tests.flows.tasks import Site, running
from tests.service.web.world import NOW, event, log

pytestmark = [pytest.mark.lab, pytest.mark.enable_socket]

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
ODD = "SomethingError: nobody has seen this before"
STALE = "OSError: [Errno 116] Stale file handle: '/{share}/ckpt.pt'"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One service for all tests of this file; each test sends its own failures."""
    with running(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def fleet(site: Site) -> int:
    """Two weeks of a team whose outage is a spike in the second one; the number of a failed job of 64 ranks."""
    outage = NOW - timedelta(days=4)
    jobs = []
    for number in range(40):
        ended = NOW - timedelta(hours=8 * number + 1)
        kind = {"status": "succeeded", "logs": []} if number % 4 else {"logs": [log("ModuleNotFoundError: No module")]}
        jobs.append(at(f"usual-{number}", ended, **kind))
    stale = [log(STALE.format(share="home"))]
    jobs += [
        at(f"outage-{n}", outage + timedelta(minutes=n), user=f"u{n}", nodes=[f"cpu{n}"], logs=stale) for n in range(30)
    ]
    jobs += [at(f"lost-{n}", outage + timedelta(minutes=n), gpus=64, logs=[log(XID, 1)]) for n in range(2)]
    ranks = [log(f"step 41\n2026-11-20T11:29:{10 + rank % 40} RuntimeError: NCCL Error 6", rank) for rank in range(64)]
    ranks[27] = log(f"step 41\n2026-11-20T11:29:03 {XID}", 27, node="gpu027")
    wide = at("wide", NOW - timedelta(minutes=30), gpus=64, logs=ranks)
    return site.tell(wide, *jobs)[0]


def at(job: str, ended: datetime, **changes: Any) -> dict[str, Any]:
    """An attempt of the team that ended at a time, after three hours."""
    started = (ended - timedelta(hours=3)).isoformat()
    return event(job, **{"team": "speech", "started_at": started, "ended_at": ended.isoformat(), **changes})


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> Variant:
    return cast("Variant", request.param)


@pytest.fixture
def page(browser: Browser, site: Site, variant: Variant) -> Iterator[Page]:
    """The operator's tab."""
    with tab(browser, site.address, **variant.context, storage_state=site.as_("ola")) as made:
        yield made


def expect_output(page: Page, words: str) -> None:
    """Wait for a page that says this, and until the whole page is there."""
    expect_text(page.locator("[role=status]").first, words)
    page.wait_for_load_state("domcontentloaded")


def test_a_verdict_is_confirmed_and_corrected(site: Site, page: Page, variant: Variant) -> None:
    [number] = site.tell(event(f"correct {variant}"))
    page.goto(f"/failures/{number}")
    page.get_by_role("button", name="Confirm", exact=True).click()
    expect_output(page, "Verdict confirmed")
    expect_text(page.locator(".sure"), "A person set this verdict")
    page.get_by_text("Correct…").click()
    form = page.locator(".judge details.act").first
    form.locator("select[name=cause]").select_option("USER.4")
    form.get_by_label("why").fill("needs a newer CUDA")
    page.get_by_role("button", name="Correct", exact=True).click()
    expect_output(page, "new version")
    expect_text(page.locator(".sure"), "Software Incompatibility")
    notes = page.locator(".notes").first.inner_text()
    assert "needs a newer CUDA" in notes
    assert "verdict was Buggy Code" in notes
    assert fits(page)
    page.get_by_text("versions of the verdict").click()
    expect(page.locator("table.versions tbody tr")).to_have_count(3)


def test_many_verdicts_are_corrected_at_once(site: Site, page: Page, variant: Variant) -> None:
    user = f"many-{variant}"
    site.tell(*(event(f"many {variant} {n}", user=user) for n in range(4)))
    page.goto(f"/failures?user={user}")
    rows = page.locator("table.failures tbody tr")
    expect(rows).to_have_count(4)
    page.get_by_role("link", name="select all 4").click()
    boxes = page.locator("table.failures").get_by_role("checkbox")
    expect(boxes.and_(page.locator(":checked"))).to_have_count(4)
    boxes.first.uncheck()
    if variant.scripts:
        expect_text(page.locator(".bulk"), "3 selected")
    page.locator(".bulk select[name=cause]").select_option("system")
    page.locator(".bulk select[name=symptom]").select_option("none")
    page.get_by_role("button", name="Correct", exact=True).click()
    expect_output(page, "3 verdicts corrected")
    assert f"user={user}" in page.url
    expect(rows).to_have_count(4)
    assert sorted(page.locator("table.failures .side").all_inner_texts()) == ["system"] * 3 + ["user"]
    assert fits(page)


def test_a_novelty_group_is_labelled_once_for_all_of_its_failures(
    browser: Browser, tmp_path: Path, variant: Variant
) -> None:
    with running(tmp_path) as own, tab(browser, own.address, **variant.context, storage_state=own.as_("ola")) as page:
        own.tell(*(event(f"odd{n}", gpus=64, logs=[log(ODD)]) for n in range(3)))
        page.goto("/model")
        row = page.locator("table.novel tbody tr", has_text=ODD)
        assert "3" in row.inner_text()
        row.locator("select[name=cause]").select_option("SYS.5")
        row.get_by_role("button", name="Label").click()
        expect_output(page, "new version")
        expect(page.locator("table.novel")).to_have_count(0)
        page.goto("/failures?cause=SYS.5")
        expect(page.locator("table.failures tbody tr")).to_have_count(3)
        assert fits(page)


def test_a_resubmit_s_outcome_arrives_and_live_where_scripts_run(site: Site, page: Page, variant: Variant) -> None:
    job, node = f"again-{variant}", f"gpu-{variant}"
    [number] = site.tell(event(job, nodes=[node], logs=[log(XID, 1, node=node)]))
    page.goto(f"/failures/{number}")
    page.get_by_label("comment", exact=True).press("Enter")
    page.wait_for_load_state()
    assert "Shadow mode" in page.locator("#automation").inner_text(), "Enter alone triggers none of the actions"
    page.get_by_role("button", name="Resubmit now").click()
    expect_output(page, "Requested. The next hook takes it.")
    stands = page.locator("#automation p[aria-live]")

    def arrives(words: str) -> None:
        if not variant.scripts:
            page.reload()
        expect(stands).to_contain_text(words)

    arrives("waiting")
    if variant.scripts:
        page.get_by_label("comment", exact=True).fill("being typed")
    given = site.lease(job)
    arrives("leased to a hook")
    site.done(given, f"{job}-2")
    arrives(f"resubmitted as job {job}-2")
    site.ends_well(f"{job}-2", job)
    arrives("succeeded")
    if variant.scripts:
        assert page.get_by_label("comment", exact=True).input_value() == "being typed"
    assert fits(page)
    page.goto("/automation?state=done")
    expect_text(page.locator("table.requests tr", has_text=job).first, "succeeded")


def test_an_incident_is_held_and_released(site: Site, page: Page, variant: Variant) -> None:
    share = f"scratch-{variant}"
    page.goto("/incidents")
    page.get_by_text("Open an incident manually").click()
    page.get_by_label("cluster").fill("orion")
    page.get_by_label("name", exact=True).fill(f"/{share}")
    page.get_by_role("button", name="Open and hold affected jobs").click()
    expect_output(page, "Jobs that fail because of this resource are held from now on.")
    address = page.url.partition("?")[0]
    labels = {"faultline/resubmit": "auto"}
    stale = [
        event(
            f"{share}-{n}",
            user=f"u{n}",
            nodes=[f"n{n}-{variant}"],
            labels=labels,
            logs=[log(STALE.format(share=share))],
        )
        for n in range(3)
    ]
    site.tell(*stale)
    page.goto(address)
    expect_text(page.locator(".sure"), "3 resubmissions are held.")
    page.get_by_role("button", name="Release one probe job").click()
    expect_output(page, "One probe job runs next")
    page.get_by_label("comment").fill("storage looks")
    page.get_by_role("button", name="Hold manually").click()
    expect_text(page.locator(".sure"), "Held by a person: no probe job is released.")
    expect_text(page.locator("table.notes"), "storage looks")
    page.get_by_label("comment").fill("failed over")
    page.get_by_role("button", name="Close and release 3").click()
    expect_text(page.locator(".sure"), "Closed by ola")
    page.wait_for_load_state("domcontentloaded")
    assert page.locator("table.failures").inner_text().count("waiting") == 3
    assert fits(page)
    page.goto("/incidents")
    row = page.locator("table.incidents tr", has_text=f"/{share}")
    assert "by ola" in row.inner_text()
    for job in stale:  # others can no longer act on it
        [number] = [
            one["id"]
            for one in site.hook.get("/api/v1/failures?limit=500").json()["items"]
            if one["job_id"] == job["job_id"]
        ]
        assert site.hook.post(f"/api/v1/failures/{number}:never").status_code == 200


def test_an_owner_contests_a_verdict_and_an_operator_judges(
    browser: Browser, site: Site, page: Page, variant: Variant
) -> None:
    mine, other = f"mine-{variant}", f"other-{variant}"
    # A group of its own: a label that contradicts earlier ones of its group would wait for a second person.
    logs = [log("KeyError: 'weight_decay'")]
    number, foreign = site.tell(event(mine, user="ana", logs=logs), event(other, user="bea", logs=logs))
    with tab(browser, site.address, **variant.context, storage_state=site.as_("ana")) as own:
        own.goto("/")
        assert own.url.endswith("/failures"), "owners come to their own failures"
        shown = own.locator("table.failures").inner_text()
        assert mine in shown
        assert other not in shown
        own.locator("table.failures tr", has_text=mine).get_by_role("link").first.click()
        own.wait_for_url("**/failures/*")
        expect(own.get_by_role("button", name="Confirm", exact=True)).to_have_count(0)
        own.get_by_text("Contest…").click()
        own.get_by_label("why it is wrong").fill(f"it is in the image {variant}")
        own.get_by_role("button", name="Contest", exact=True).click()
        expect(own.locator("[role=status]").first).to_contain_text("your objection", ignore_case=True)
        assert fits(own)
        answer = own.request.get(f"/failures/{foreign}")
        assert answer.status == 404
    page.goto("/feedback")
    row = page.locator("table.queue tbody tr", has_text=f"it is in the image {variant}")
    assert mine in row.inner_text()
    assert fits(page)
    row.get_by_role("button", name="Confirm verdict").click()
    expect(page.locator("table.queue tbody tr", has_text=f"it is in the image {variant}")).to_have_count(0)
    page.goto(f"/failures/{number}")
    expect_text(page.locator(".sure"), "A person set this verdict")


def test_all_automation_is_stopped_and_started_again(site: Site, page: Page, variant: Variant) -> None:
    job, node = f"stopped-{variant}", f"gpu-stopped-{variant}"
    labels = {"faultline/resubmit": "auto"}
    site.tell(event(job, nodes=[node], labels=labels, logs=[log(XID, 1, node=node)]))
    page.goto("/failures")
    page.locator("header").get_by_role("button", name="Stop").click()
    expect_output(page, "Stopped.")
    expect_text(page.locator("h1"), "Automation is stopped")
    expect_text(page.locator("main"), "Stopped by ola")
    asked = {"hook": "slurm@login1", "cluster": "orion", "max": 10, "seconds": 600}
    assert site.hook.post("/api/v1/resubmissions:lease", json=asked).json() == []
    page.goto("/")
    expect_text(page.locator("header"), "stopped")
    assert fits(page)
    page.goto("/automation")
    page.get_by_role("button", name="Start automation again").click()
    expect_output(page, "Started.")
    site.done(site.lease(job), f"{job}-2")


def test_the_cause_of_a_spike_is_named_after_one_zoom(fleet: int, page: Page, variant: Variant) -> None:
    del fleet
    page.goto("/?since=7d&team=speech")
    bars = page.locator("svg.stack").first.locator("a")
    heights = [bar.locator("path.system").count() for bar in bars.all()]
    spike = heights.index(1)
    if variant.scripts:
        chart = page.locator(".chart").first.locator(".u-over")
        box = chart.bounding_box()
        assert box is not None
        wide, middle = box["width"] / len(heights), box["height"] / 2
        chart.hover(position={"x": (spike + 0.1) * wide, "y": middle})
        expect_text(page.locator(".chart").first.locator(".tip"), "system")
        page.mouse.down()
        if variant.width > 1000:  # else a click
            page.mouse.move(box["x"] + (spike + 0.9) * wide, box["y"] + middle, steps=5)
        page.mouse.up()
    else:
        bars.nth(spike).click()
    expect(page).to_have_url(re.compile("until="))
    expect(page).to_have_url(re.compile("team=speech"))
    expect_text(page.locator("h1"), "32 of")
    causes = page.locator("section", has=page.get_by_role("heading", name="By cause")).locator("tbody tr")
    assert "Transient Service Outage" in causes.first.inner_text()
    assert "30" in causes.first.inner_text()
    frequent = page.locator("section.frequent tbody tr").first
    many = frequent.get_by_role("link").nth(1)
    count = int(many.inner_text())
    assert count > 16, "one group has most of the 32 failures of the spike"
    many.click()
    expect(page.locator("table.failures tbody tr")).to_have_count(count)
    assert fits(page)


def test_the_rank_where_it_began_is_found_among_64(fleet: int, page: Page) -> None:
    page.goto(f"/failures/{fleet}")
    spread = page.locator("section.spread")
    assert "Rank 27 on gpu027 failed first, 63 others because of it." in spread.inner_text()
    assert spread.locator("svg text", has_text="rank 27").count() == 1
    spread.get_by_text("Show as table").click()
    first = spread.locator("table.ranks tbody tr").first.inner_text()
    assert "27" in first
    assert "gpu027" in first
    assert "initiating" in first
    assert fits(page)


def test_what_shadow_mode_would_have_saved_is_read_in_figures(fleet: int, page: Page) -> None:
    del fleet
    page.goto("/")
    follow(page, "Automation")
    page.wait_for_url("**/automation*")
    text = page.locator("section.funnel").inner_text()
    assert "Shadow mode:" in text
    assert "would have been requested" in text
    assert "GPU-hours" in text
    page.locator("section.funnel").get_by_role("link", name="Show them").click()
    expect(page).to_have_url(re.compile("state=shadow#requests"))
    expect(page.locator("table.requests tbody tr")).not_to_have_count(0)
    assert fits(page)


def test_the_goodput_of_two_weeks_is_compared(fleet: int, page: Page) -> None:
    del fleet
    page.goto("/goodput?team=speech")
    page.get_by_role("link", name="last 7 days").click()
    rows = page.locator("table.periods tbody tr")
    cells = rows.filter(has_text="goodput").locator("td")
    expect(cells).to_have_count(4)
    before, now, change, _ = cells.all_inner_texts()
    assert float(now.rstrip(" %")) < float(before.rstrip(" %")), "the outage was in the last seven days"
    assert change.startswith("−")
    lost = rows.filter(has_text="lost, system").locator("td")
    assert lost.nth(2).inner_text().startswith("+")
    assert lost.last.inner_text().startswith("−"), "its effect on goodput"
    head = page.locator(".head").inner_text()
    assert f"{change.removeprefix('−')} less than in the period before" in head
    assert "more lost to system failures" in head
    assert fits(page)
    texts = page.locator("#definitions dd").evaluate_all("all => all.map(one => one.getBoundingClientRect().width)")
    assert min(texts) > 200, "no definition is squeezed into a column of single words"
    page.get_by_role("link", name="period before").click()
    expect_text(page.locator("h1"), before)


def test_a_person_subscribes_to_the_report_of_a_team_and_ends_it(fleet: int, page: Page) -> None:
    del fleet
    page.goto("/reports")
    page.get_by_role("link", name="2026-W47").first.click()
    page.get_by_label("team").fill("speech")
    page.get_by_role("button", name="Show").click()
    expect_text(page.locator("h1"), "team speech")
    assert fits(page)
    page.get_by_text("Get this report every week").click()
    page.get_by_role("button", name="Subscribe").click()
    expect_output(page, "Subscribed: ola by mail: team speech.")
    assert fits(page)
    page.get_by_role("button", name="Send the last report now to ola by mail: team speech").click()
    expect_output(page, "The report of week 2026-W46 is being sent to ola by mail: team speech.")
    assert fits(page)
    page.get_by_role("button", name="Unsubscribe ola by mail: team speech").click()
    expect_output(page, "no longer sent")


def test_the_report_of_a_team_is_published_and_found_in_the_list(fleet: int, page: Page) -> None:
    del fleet
    page.goto("/reports/2026-W46?team=speech")
    page.get_by_role("button", name=re.compile("^Publish")).click()
    expect_text(page.locator(".head .pages"), "versions: 1")
    assert page.url.endswith("/reports/2026-W46?team=speech")
    page.goto("/reports")
    row = page.locator("#scoped tbody tr", has_text="team speech")
    expect(row).to_have_count(1)
    assert fits(page)
    row.get_by_role("link", name="2026-W46").click()
    expect_text(page.locator("h1"), "team speech")
    assert page.url.endswith("?team=speech&version=1")
