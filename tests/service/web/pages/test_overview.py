"""The charts of the overview."""

import re
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service.reports.chart import nice
from service.statistics.records import PeriodCount
from service.web import goodput_views
from service.web.pages import overview
from service.web.pages.charts.stacked_bars import HEIGHT, charts, wider
from tests.service.sample_rows import job, put, succeeded
from tests.service.web.world import NOW, World, event, lines, log

DAYS = 27


def part(day: int, **sides: int) -> PeriodCount:
    begin = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=day)
    hours = {side: 0.5 * count for side, count in sides.items()}
    return PeriodCount(begin, begin + timedelta(days=1), 10, sum(sides.values()), sides, hours)


@pytest.mark.parametrize(("since", "parts", "unit"), [("24h", 25, "hour"), ("7d", 29, "6 hours"), ("28d", 29, "day")])
def test_the_chart_covers_the_whole_chosen_period(client: TestClient, since: str, parts: int, unit: str) -> None:
    old = (NOW - timedelta(days=DAYS)).isoformat()
    events = [
        event("1", ended_at=old, started_at=old),
        event("2", logs=[log("NVRM: Xid 79, GPU has fallen off the bus", 1)]),
    ]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == 2
    shown = client.get(f"/?since={since}").text
    rows = re.findall(r"<tr><td>(.*?)</td>", shown.partition('class="figures parts"')[2].partition("</table>")[0])
    assert len(rows) in {parts, parts - 1}
    assert f"Failed attempts per {unit}" in shown
    labels = re.findall(r"<span>(.*?)</span>", shown.partition('<p class="axis">')[2].partition("</p>")[0])
    assert len(set(labels)) == len(labels) > 3, "every label of the axis says another time"
    dates = [label.partition(" ")[0] for label in labels if "-" in label]
    assert len(set(dates)) == len(dates), "a date is said once"
    assert "-" in labels[0]
    assert len(re.findall(r'<path class="user"', shown)) == (1 if since == "28d" else 0)
    assert len(re.findall(r'<path class="hardware"', shown)) == 2


def test_the_last_hour_is_one_click_away(client: TestClient) -> None:
    before = (NOW - timedelta(minutes=90)).isoformat()
    client.post("/api/v1/events", content=lines(event("1"), event("2", started_at=before, ended_at=before)))
    for path in ("/", "/failures"):
        assert f'<a href="{path}?since=1h"><span class="last">last </span>1 h</a>' in client.get(path).text
    shown = client.get("/?since=1h").text
    assert '<a href="/?since=1h" aria-current="true"><span class="last">last </span>1 h</a>' in shown
    assert "Failed attempts per 5 minutes" in shown
    assert len(client.get("/api/v1/failures?since=1h").json()["items"]) == 1
    assert client.get("/failures?since=1h").text.count('<td class="what">') == 1


def test_the_period_is_kept_from_page_to_page(client: TestClient) -> None:
    for path in ("/", "/failures", "/goodput"):
        shown = client.get(f"{path}?since=7d").text
        for address in ("/", "/failures", "/goodput"):
            assert f'<li><a href="{address}?since=7d"' in shown


def test_the_period_before_is_compared(client: TestClient) -> None:
    before = (NOW - timedelta(hours=30)).isoformat()
    events = [event("1"), event("2", ended_at=before, started_at=before), event("3", status="succeeded", logs=[])]
    client.post("/api/v1/events", content=lines(*events))
    assert "In the period before: 1 of 1 failed" in client.get("/?since=24h").text
    assert "In the period before" not in client.get("/?since=7d").text


def test_the_change_of_failures_is_that_of_their_rate(client: TestClient) -> None:
    before = (NOW - timedelta(hours=30)).isoformat()
    good = [event(f"good {n}", status="succeeded", logs=[], started_at=before, ended_at=before) for n in range(8)]
    bad = [event(f"bad {n}", started_at=before, ended_at=before) for n in range(2)]
    client.post("/api/v1/events", content=lines(*good, *bad, event("1"), event("2", status="succeeded", logs=[])))
    tile = client.get("/?since=24h").text.partition("Failed attempts</h2>")[2].partition("</div>")[0]
    assert "▲ 30.0 points</strong> more than the 20.0\u00a0% before" in tile, (
        "half as many failures of a fifth of the jobs"
    )


def test_what_needs_attention_is_named_above_the_figures(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1", logs=[log("KeyError: 'weight_decay'")])))
    above, _, below = client.get("/").text.partition('class="tiles"')
    named = re.search(r'Needs attention: <a href="/groups/\d+">(.*?)</a> \((.*?)\)', above)
    assert named is not None
    assert (named[1], named[2]) == ("KeyError: &#39;weight_decay&#39;", "new")
    assert 'id="attention"' in below
    past = client.get("/?since=2026-11-01&until=2026-11-19").text
    assert "Needs attention now: <a" in past, "of now, whatever the period"
    assert "<h2>Needs attention now</h2>" in past


def test_a_wrong_time_is_named_with_the_period_that_is_shown_instead(client: TestClient) -> None:
    for page, usual in (("/", "last 24 h"), ("/goodput", "last 28 days"), ("/automation", "last 28 days")):
        assert f"The figures below are those of the {usual}." in client.get(f"{page}?since=soon").text
        assert "The figures below" not in client.get(page).text


def test_a_late_event_of_an_hour_that_is_counted_is_shown_at_once(world: World) -> None:
    late = (NOW - timedelta(days=3)).isoformat()

    def count() -> None:
        with world.store.unit_of_work() as work:
            work.rollups.recount(NOW)

    with world.client() as client:
        for number in range(1, 4):
            client.post("/api/v1/events", content=lines(event(f"{number}", ended_at=late, started_at=late)))
            for _ in range(2):  # before and after its hour is counted
                for since in ("96h", "7d", "28d"):
                    shown = client.get(f"/?since={since}").text
                    assert f">{number}</a> of {number} job attempt" in shown
                    assert f"failed attempts over time, {number} at most" in shown
                    assert client.get(f"/api/v1/stats?since={since}").json()["stats"]["failed"] == number
                count()


def hours_ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat()


@pytest.fixture
def ended_jobs(client: TestClient) -> TestClient:
    events = [
        event("1", status="succeeded", logs=[], gpus=8, started_at=hours_ago(12), ended_at=hours_ago(2)),
        event("2", gpus=8, started_at=hours_ago(4), ended_at=hours_ago(2)),
        event("3", gpus=8, started_at=hours_ago(31), ended_at=hours_ago(30)),
    ]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == 3
    return client


def test_the_goodput_of_the_period_is_shown_next_to_the_one_before(ended_jobs: TestClient) -> None:
    shown = ended_jobs.get("/?since=24h").text
    assert re.search(r'<a href="/goodput\?since=24h"><span class="hidden">Goodput </span>83.3\u00a0%</a>', shown)
    assert "of 96 GPU-h</small>" in shown
    assert "▲ 83.3 points</strong> more than the 0.0\u00a0% before" in shown
    shown = ended_jobs.get("/?since=7d&cluster=nowhere").text
    assert "no GPU-hours are known in this period" in shown


def test_goodput_is_not_compared_with_a_period_in_which_next_to_nothing_ended(client: TestClient) -> None:
    many = [
        event(str(n), status="succeeded", logs=[], started_at=hours_ago(3), ended_at=hours_ago(2)) for n in range(21)
    ]
    client.post("/api/v1/events", content=lines(*many, event("x", started_at=hours_ago(31), ended_at=hours_ago(30))))
    page = client.get("/?since=24h").text
    assert page.count("Too few jobs ended in the period before to compare with it.") == 1
    tiles = page.partition('class="tiles"')[2].partition("Open incidents")[0]
    assert "before" not in tiles


def test_a_page_does_not_wait_for_the_goodput_of_a_large_period(
    ended_jobs: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ended_jobs.get("/?since=7d").text
    monkeypatch.setattr(goodput_views, "SMALL", 0)
    assert "of this period is being computed" in ended_jobs.get("/?since=7d").text
    until = time.monotonic() + 60
    while "being computed" in (shown := ended_jobs.get("/?since=7d").text):
        assert time.monotonic() < until
        time.sleep(0.01)
    (summary,) = re.findall(r".*of [0-9,]+ GPU-h</small>.*", shown)
    assert summary in small


def test_sides_are_stacked_and_the_highest_bar_fits_the_axis() -> None:
    failed, lost = charts([part(0, hardware=3, user=4), part(1), part(2, system=1)], ZoneInfo("UTC"))
    assert failed.ticks == ("10", "5", "0")
    assert [one.side for one in failed.bars[0].segments] == ["hardware", "user"]
    top, bottom = failed.bars[0].segments[1], failed.bars[0].segments[0]
    assert bottom.y + bottom.height == HEIGHT
    assert top.y + top.height == bottom.y
    assert top.y >= 0
    assert failed.bars[1].segments == ()
    assert lost.bars[0].title == "2026-11-01: hardware 1.5, user 2"
    assert lost.total == 4.0


@pytest.mark.parametrize(
    ("most", "height"), [(0, 2), (1, 2), (2, 2), (3, 5), (7, 10), (11, 20), (51, 100), (999, 1000)]
)
def test_an_axis_ends_at_a_round_number_that_is_not_exceeded(most: float, height: float) -> None:
    assert nice(most) == height


def test_the_most_frequent_group_of_the_period_is_named_and_its_count_opens_the_list(client: TestClient) -> None:
    xid = [log("NVRM: Xid 79, GPU has fallen off the bus", 1)]
    old = {"started_at": hours_ago(60), "ended_at": hours_ago(50)}
    events = [
        *(event(f"m{number}", user=f"u{number % 2}") for number in range(3)),
        event("x", logs=xid),
        *(event(f"o{number}", logs=xid, **old) for number in range(5)),
    ]
    client.post("/api/v1/events", content=lines(*events))
    shown = client.get("/?since=24h").text
    summary = re.sub(r"<[^>]+>", "", shown.partition("Most frequent: ")[2].partition("</p>")[0])
    assert summary.endswith("(3 of 4 failures, 2 users).")
    rows = shown.partition("<h2>Most frequent failures of this period</h2>")[2].partition("</table>")[0]
    counts = re.findall(r'<a href="(/failures[^"]+)">(\d+)</a>', rows)
    assert [int(many) for _, many in counts] == [3, 1]
    for address, many in counts:
        assert client.get(address.replace("&amp;", "&")).text.count('<td class="what">') == int(many)


def test_further_groups_of_the_period_can_be_opened(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "FREQUENT", 1)
    client.post("/api/v1/events", content=lines(event("1"), event("2"), event("x", logs=[log("NVRM: Xid 79", 1)])))
    assert '<a href="/groups?since=24h">and 1 more group</a>' in client.get("/?since=24h").text


def test_the_number_of_failed_jobs_opens_these_without_preempted_ones(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2", status="preempted"), event("3", status="hung")))
    shown = client.get("/").text
    [(address, many)] = re.findall(r'<h1>\s*<a href="([^"]+)">(\d+)</a>', shown)
    listed = client.get(address.replace("&amp;", "&")).text
    assert (many, listed.count('<td class="what">')) == ("2", 2)
    assert "/ 2<" not in listed
    assert "<span>status</span> counted as failed" in listed


def test_a_chosen_hour_has_bars_of_five_minutes_and_a_way_out(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    shown = client.get("/?since=2026-11-20T11:00:00Z&until=2026-11-20T12:00:00Z").text
    assert "Failed attempts per 5 minutes" in shown
    assert shown.count('<path class="user"') == 2  # a bar in each of the two charts
    assert '<a href="/?since=2026-11-20T09%3A00%3A00Z&amp;until=2026-11-20T12%3A00%3A00Z">zoom out</a>' in shown
    assert "zoom out" not in client.get("/?since=24h").text


@pytest.mark.parametrize("page", ["/", "/goodput"])
def test_blanks_around_a_pasted_name_do_not_count(client: TestClient, page: str) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    for name in ("cluster=orion", "team=vision", "queue=gpu"):
        plain, pasted = (client.get(f"{page}?{name}{blank}").text for blank in ("", "%20"))
        heads = [text.partition("<h1>")[2].partition("</h1>")[0] for text in (plain, pasted)]
        assert heads[0].replace("%20", "") == heads[1], name
        assert "No " not in heads[0]


def test_an_end_without_a_begin_shows_the_usual_period_before_it(world: World) -> None:
    ended = NOW - timedelta(days=40, hours=3)
    put(world.store, [job("a", ended_at=ended, started_at=ended - timedelta(hours=1)), succeeded("b", ended_at=ended)])
    client, until = world.client(), f"{NOW - timedelta(days=40):%Y-%m-%dT%H:%M:%SZ}"
    page = client.get(f"/?until={until}").text
    assert "of 2 job attempts failed" in page
    [address] = re.findall(r'<h1>\s*<a href="([^"]+)">1</a>', page)
    assert client.get(address.replace("&amp;", "&")).text.count('<td class="what">') == 1
    stats = client.get(f"/api/v1/stats?until={until}").json()["stats"]
    assert (stats["since"], stats["finished"]) == ("2026-10-10T12:00:00Z", 2)
    figures = client.get(f"/api/v1/goodput?until={until}").json()["figures"]
    assert (figures["since"], figures["attempts"]) == ("2026-09-13T12:00:00Z", 2)
    assert "GPU-hours delivered" in client.get(f"/goodput?until={until}").text


def test_a_period_around_a_time_in_the_past_is_widened_to_both_sides() -> None:
    hour = timedelta(hours=1)
    assert wider(NOW - 10 * hour, NOW - 9 * hour, NOW) == {
        "since": "2026-11-20T01:00:00Z",
        "until": "2026-11-20T04:00:00Z",
    }
    assert wider(datetime(1, 1, 2, tzinfo=UTC), NOW, NOW) is None


def test_the_number_of_cancelled_jobs_leads_to_no_list_that_lacks_most_of_them(client: TestClient) -> None:
    events = [event("1", status="cancelled", logs=[]), event("2", status="preempted"), event("3")]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == 3
    page = client.get("/").text
    assert "not counted: 1 cancelled" in re.sub(r"<[^>]+>", "", page)
    assert "status=cancelled" not in page
    preempted = re.search(r'href="(/failures\?[^"]*status=preempted)">1 preempted', page)
    assert preempted is not None
    assert client.get(preempted[1].replace("&amp;", "&")).text.count('<td class="what">') == 1


def test_the_most_expensive_failures_say_where_the_figures_above_do_not_count_them(client: TestClient) -> None:
    note = "Cancelled and preempted attempts are listed here too. The figures above do not count them."
    client.post("/api/v1/events", content=lines(event("1")))
    assert note not in client.get("/").text
    client.post("/api/v1/events", content=lines(event("2", status="preempted", gpus=64)))
    assert note in client.get("/").text


def test_a_period_with_only_cancelled_jobs_says_that_none_succeeded_or_failed(client: TestClient) -> None:
    cancelled = [event(str(n), status="cancelled", logs=[], ended_at=hours_ago(2)) for n in range(2)]
    client.post("/api/v1/events", content=lines(*cancelled, event("3", ended_at=hours_ago(30))))
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", client.get("/?since=24h").text))
    assert "No job succeeded or failed in this period." in page
    assert "not counted: 2 cancelled" in page
    assert "No job ended" not in page
    assert "No job has arrived" not in client.get("/?since=1h").text
    tile = page.partition("Failed attempts")[2].partition("GPU-hours lost")[0]
    assert "no period to compare with" not in tile, "there is one: it is this period that has no rate"
    assert "No job of cluster orion succeeded or failed in this period." in re.sub(
        r"<[^>]+>", "", client.get("/?since=24h&cluster=orion").text
    )
