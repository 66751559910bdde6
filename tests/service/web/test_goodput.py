"""The page and the API of goodput figures."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service import weeks
from service.web import goodput_views
from service.web.app import create_app
from tests.service.sample_rows import job, put, succeeded
from tests.service.web.world import HERE, NOW, World

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def filled(world: World) -> World:
    ended = NOW - timedelta(days=2)
    put(world.store, [succeeded("a", ended_at=ended, started_at=ended - timedelta(hours=30), gpus=8)])
    put(
        world.store,
        [job("b", ended_at=ended, started_at=ended - timedelta(hours=2))],
        side="hardware",
        cause="HW.GPU.2",
    )
    put(world.store, [job("c", ended_at=ended, started_at=ended - timedelta(hours=2), cluster="vega")])
    return world


def test_the_page_and_the_api_show_the_same_figures(filled: World) -> None:
    client = filled.client()
    page, answer = client.get("/goodput").text, client.get("/api/v1/goodput").json()
    figures = answer["figures"]
    assert (figures["held"], figures["lost"], figures["delivered"]) == (256.0, 8.0, 248.0)
    assert "Goodput 96.9\u00a0%: 248 of 256 GPU-hours delivered, 8.0 lost to failures" in page
    assert figures["hardware_failures"] == 1
    assert '<p class="axis"><span>10 GPU-hours</span></p>' in page  # the top of the chart
    assert answer["cost"] is None
    for one in answer["definitions"].values():
        assert one["text"].split(".")[0] in page.replace("&#39;", "'")
    assert "arxiv.org/abs/2410.21680" in page


def test_counts_open_the_failures_that_are_counted(filled: World) -> None:
    stopped = NOW - timedelta(days=2)
    for status in ("cancelled", "preempted"):
        of = job(status, status=status, ended_at=stopped, started_at=stopped - timedelta(hours=2))
        put(filled.store, [of], side="hardware", cause="HW.GPU.2")
    client = filled.client()
    page = client.get("/goodput").text
    found = re.findall(r'<a href="(/failures\?[^"]+)">(\d+)</a>', page)
    assert len(found) == 4, "two causes, the failures by hardware, and one interruption"
    for address, count in found:
        assert len(client.get("/api/v1" + html.unescape(address)).json()["items"]) == int(count), address


def test_bars_stand_on_the_axis(filled: World) -> None:
    with filled.client() as client:
        pages = [client.get(path).text for path in ("/goodput", "/reports/2026-W47")]
    for page in pages:
        found = re.findall(r'<svg class="weeks" viewBox="0 (-?\d+) [\d.]+ ([\d.]+)"(.*?)</svg>', page, re.DOTALL)
        assert found
        for top, height, chart in found:
            lines = [float(y) for y in re.findall(r'<line class="grid"[^>]* y2="([\d.]+)"', chart)]
            assert float(top) + float(height) == max(lines), "the border of the chart is its lowest line"


def test_the_scope_and_the_period_are_in_the_url(filled: World) -> None:
    client = filled.client()
    assert client.get("/api/v1/goodput?cluster=vega").json()["figures"]["held"] == 8.0
    assert client.get("/api/v1/goodput?team=nobody").json()["figures"]["goodput"] is None
    assert client.get("/api/v1/goodput?since=24h").json()["figures"]["attempts"] == 0
    assert "No GPU-hours are known in this period" in client.get("/goodput?since=24h").text
    assert client.get("/goodput?since=2026-11-20&until=2026-11-01").status_code == 422
    assert client.get("/api/v1/goodput?since=9999d").status_code == 422


def test_days_that_are_not_whole_are_marked_in_chart_and_table(filled: World) -> None:
    client = filled.client()
    page = client.get("/goodput?since=7d").text  # from noon to noon
    assert page.count('<g class="partial">') == 2
    assert "The first day is not whole (drawn paler): it begins 2026-11-13 12:00" in page
    assert "The last day is not whole: it ends 2026-11-20 12:00" in page
    table = page.partition('aria-label="GPU-hours over time"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr><td>(.*?)</td>", table)
    assert [number for number, row in enumerate(rows) if "part of the day" in row] == [0, len(rows) - 1]
    assert "&#34;partial&#34;:[0,7]" in page
    whole = client.get("/goodput?since=2026-11-13&until=2026-11-20").text
    assert "partial" not in whole.replace("&#34;partial&#34;:[]", "")
    weeks = client.get("/goodput?since=2026-06-01&until=2026-11-20").text
    assert "The last week is not whole (drawn paler): it ends 2026-11-20 00:00" in weeks
    assert "GPU-hours lost per week" in weeks
    assert "The first week" not in weeks, "it begins on a Monday"


def test_a_day_whose_first_hour_does_not_exist_is_whole(world: World) -> None:
    """In Santiago, the clock was put forward at 2026-09-06 00:00."""
    client = TestClient(create_app(replace(world.services, timezone="America/Santiago")), base_url=HERE)
    ended = datetime(2026, 9, 7, 10, tzinfo=UTC)
    put(world.store, [job("a", ended_at=ended, started_at=ended - timedelta(hours=2))])
    page = client.get("/goodput?since=2026-09-05&until=2026-09-09").text
    assert "&#34;partial&#34;:[]" in page
    assert "&#34;partial&#34;:[3]" in client.get("/goodput?since=2026-09-05&until=2026-09-08T12:00:00Z").text
    assert "&#34;partial&#34;:[0]" in client.get("/goodput?since=2026-09-05T12:00:00Z&until=2026-09-09").text


def test_a_price_gives_the_cost_of_lost_hours(filled: World) -> None:
    priced = replace(filled.services, gpu_hour_price=2.5, gpu_hour_currency="EUR")
    client = TestClient(create_app(priced), base_url=HERE)
    cost = client.get("/api/v1/goodput").json()["cost"]
    assert (cost["currency"], cost["lost"], cost["by_cause"]["HW.GPU.2"]) == ("EUR", 20.0, 10.0)
    assert "20 EUR" in client.get("/goodput").text
    assert " EUR a GPU-hour, this is " in client.get(f"/reports/{weeks.of(NOW, ZoneInfo('UTC'))}").text


def test_a_period_is_divided_into_days_of_the_zone_or_weeks() -> None:
    since, until = datetime(2026, 10, 24, 10, tzinfo=UTC), datetime(2026, 10, 27, 10, tzinfo=UTC)
    bounds = goodput_views.parts(since, until, BERLIN)
    assert bounds == (
        since,
        datetime(2026, 10, 24, 22, tzinfo=UTC),
        datetime(2026, 10, 25, 23, tzinfo=UTC),
        datetime(2026, 10, 26, 23, tzinfo=UTC),
        until,
    )
    weeks = goodput_views.parts(since, since + timedelta(days=100), BERLIN)
    assert {(b - a).days for a, b in pairwise(weeks[1:-1])} == {7}


def test_periods_at_the_limits_of_dates_have_an_answer(filled: World) -> None:
    client = filled.client()
    for period in ("since=9999-12-30&until=9999-12-31T23:59:59Z", "since=0001-01-02&until=0001-06-01"):
        assert client.get(f"/api/v1/goodput?{period}").json()["figures"]["attempts"] == 0


def test_the_head_says_how_goodput_changed_and_through_what(world: World) -> None:
    for days, lost in ((2, 1.0), (9, 4.0)):  # 10 of 100 GPU-hours in this week, 40 of 100 in the week before
        ended = NOW - timedelta(days=days)
        put(
            world.store,
            [succeeded(f"good {days}", ended_at=ended, started_at=ended - timedelta(hours=100 - 10 * lost), gpus=1)],
        )
        bad = job(
            f"bad {days}",
            ended_at=ended,
            started_at=ended - timedelta(hours=10 * lost),
            gpus=1,
            gpu_hours_lost=10 * lost,
        )
        put(world.store, [bad], side="hardware", cause="HW.GPU.2")
    page = world.client().get("/goodput?since=7d").text
    assert "<strong>30.0 points more</strong>" in page
    assert "(60.0\u00a0%): less lost to hardware failures (+30.0 points)." in page
    table = page.partition('id="compared"')[2].partition("</table>")[0]
    assert "Effect on goodput" in table
    assert table.count("+30.0 points") == 2, "of goodput and of hardware failures"
    before = page.partition('">period before')[0].rpartition('href="')[2].replace("&amp;", "&")
    assert "Goodput 60.0\u00a0%" in world.client().get(before).text
    assert "points more" not in world.client().get("/goodput?since=28d").text, "nothing ended before"


@pytest.mark.parametrize(("slow_s", "attempts"), [(-1.0, 3), (0.2, 4)])
def test_only_figures_that_take_long_are_computed_once_for_several_visitors(
    filled: World, monkeypatch: pytest.MonkeyPatch, slow_s: float, attempts: int
) -> None:
    monkeypatch.setattr(goodput_views, "SLOW_S", slow_s)  # the clock of this test stands still: nothing takes time
    client = filled.client()
    assert client.get("/api/v1/goodput").json()["figures"]["attempts"] == 3
    ended = NOW - timedelta(days=1)
    put(filled.store, [succeeded("d", ended_at=ended, started_at=ended - timedelta(hours=1))])
    assert client.get("/api/v1/goodput").json()["figures"]["attempts"] == attempts


def test_a_period_before_that_had_hardly_any_hours_is_not_compared(world: World) -> None:
    for days, hours in ((2, 100.0), (9, 4.0)):
        ended = NOW - timedelta(days=days)
        put(world.store, [succeeded(f"{days}", ended_at=ended, started_at=ended - timedelta(hours=hours), gpus=1)])
    assert 'id="compared"' not in world.client().get("/goodput?since=7d").text
    ended = NOW - timedelta(days=10)
    put(world.store, [succeeded("more", ended_at=ended, started_at=ended - timedelta(hours=1), gpus=1)])
    assert 'id="compared"' in world.client().get("/goodput?since=7d&cluster=orion").text, "a twentieth"
