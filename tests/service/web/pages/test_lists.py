"""Filters of the lists, wrong times, and the notice of new failures."""

import re
import urllib.request
from datetime import timedelta

import orjson
import pytest
from fastapi.testclient import TestClient

from tests.service.web.live import serving
from tests.service.web.world import NOW, World, event, lines, log

XID = [log("fine\nNVRM: Xid 79, GPU has fallen off the bus", 1)]


def put(client: TestClient, *events: dict[str, object]) -> None:
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)


def test_a_wrong_time_keeps_the_filter_form_and_names_the_field(client: TestClient) -> None:
    put(client, event("1"))
    answer = client.get("/failures?since=yesterday&user=ana&q=flash")
    assert answer.status_code == 422
    assert 'value="yesterday"' in answer.text
    assert 'value="flash"' in answer.text
    assert "since: expected a time with zone" in answer.text
    assert "Correct the filter above" in answer.text
    assert "save these filters as" not in answer.text, "a wrong filter is not worth saving"


def test_a_wrong_time_on_the_overview_shows_the_last_day_and_names_the_field(client: TestClient) -> None:
    put(client, event("1"))
    answer = client.get("/?since=yesterday")
    assert answer.status_code == 422
    assert "since: expected a time with zone" in answer.text
    assert "of 1 job attempt failed" in re.sub(r"<[^>]+>", "", answer.text)


@pytest.mark.parametrize(
    ("address", "chip"),
    [
        ("/failures?q=flash", "words in the log flash"),
        ("/failures?abstained=true", "verdict undecided"),
        ("/failures?status=out_of_memory", "status out of memory"),
        ("/groups?novel=1", "verdict undecided"),
        ("/groups?muted_by_me=1", "muted by you shown"),
    ],
)
def test_a_filter_in_use_is_named_in_words(client: TestClient, address: str, chip: str) -> None:
    shown = client.get(address).text
    [chips] = re.findall(r'<p class="chips">(.*?)</p>', shown, re.DOTALL)
    assert chip in re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", chips))


@pytest.mark.enable_socket
def test_the_notice_counts_only_new_failures_that_match_the_filters(world: World) -> None:
    with world.client() as client:
        put(client, event("1"))
        place = client.get("/failures?user=bo").text
        assert 'data-filters="?user=bo"' in place
        recent = {"ended_at": (NOW - timedelta(minutes=1)).isoformat()}
        put(client, event("2", **recent), event("3", user="bo", logs=XID, **recent))
    with serving(world.app) as site:
        assert counted(site, "user=bo") == 1
        assert counted(site, "side=system") == 0
        assert counted(site, "") == 2


def counted(site: str, query: str) -> int:
    """The number of new failures that the event stream reports first."""
    with urllib.request.urlopen(f"{site}/live?after=1&{query}", timeout=120) as answer:
        for line in answer:
            if line.startswith(b"data:"):
                found: int = orjson.loads(line.removeprefix(b"data:"))["new"]
                return found
    raise AssertionError("the stream ended without an event")


@pytest.mark.parametrize(
    "page", ["/", "/failures", "/goodput", "/audit-log", "/groups", "/groups?view=board", "/incidents"]
)
def test_a_period_that_ends_before_it_begins_is_named(client: TestClient, page: str) -> None:
    page += "&" if "?" in page else "?"
    answer = client.get(f"{page}since=2026-11-20&until=2026-11-10")
    assert answer.status_code == 422
    assert "until: expected a time after since, not 2026-11-10" in answer.text
    assert client.get(f"{page}since=2026-11-10&until=2026-11-20").status_code == 200


def test_groups_and_their_links_keep_the_period_of_the_header(client: TestClient) -> None:
    early = (NOW - timedelta(days=9)).isoformat()
    put(client, event("1", logs=XID), event("2", started_at=early, ended_at=early))
    for address, seen in (("/groups", 2), ("/groups?since=7d", 1), ("/groups?since=2026-11-01&until=2026-11-15", 1)):
        page = client.get(address).text
        assert len(re.findall(r'href="/groups/\d+"', page)) == seen, address
        api = client.get(f"/api/v1{address}")
        assert len(api.json()["items"]) == seen
    page = client.get("/groups?since=7d&side=hardware").text
    assert '<a href="/groups?since=24h&amp;side=hardware"><span class="last">last </span>24 h</a>' in page
    assert 'name="since" value="7d"' in page.partition("<main")[2], "the form of the filters keeps it"
    for other in ("/incidents", "/nodes", "/failures"):
        assert f'href="{other}?since=7d"' in page.partition("<header")[0]
    assert client.get("/api/v1/groups?since=soon").status_code == 422


def test_a_wrong_time_of_goodput_shows_the_usual_period_and_names_the_field(client: TestClient) -> None:
    answer = client.get("/goodput?since=yesterday&cluster=orion")
    assert answer.status_code == 422
    assert "since: expected a time" in answer.text
    assert '<input name="cluster" list="known-cluster" value="orion"' in answer.text


def test_an_overview_without_jobs_names_the_filters_and_leads_back(client: TestClient) -> None:
    page = client.get("/?cluster=oriom&since=7d").text
    assert "No job of cluster oriom ended in this period." in page
    assert '<a href="/?since=7d">Show all jobs of this period</a>' in page
    page = client.get("/goodput?cluster=oriom&since=7d").text
    assert "No GPU-hours are known in this period." in page
    assert '<a href="/goodput?since=7d">Show all jobs of this period</a>' in page
    page = client.get("/nodes?cluster=oriom").text
    assert 'No nodes of this cluster are known. <a href="/nodes">Nodes of all clusters</a>' in page
    assert "No job ended in this period." in client.get("/").text
    assert "No job has arrived here yet." in client.get("/?since=7d&cluster=orion").text


def test_fields_offer_the_known_clusters_queues_and_teams(guarded: World) -> None:
    ended = (NOW - timedelta(days=2)).isoformat()
    events = [event(str(n), cluster=name, team="speech", queue="q1", ended_at=ended) for n, name in enumerate("ba")]
    with guarded.client(guarded.token("ingest")) as client:
        put(client, *events)
    with guarded.store.unit_of_work() as work:
        while work.rollups.recount(NOW) > 0:
            pass
    with guarded.client(guarded.token("read")) as client:
        page = client.get("/").text
        offered = '<datalist id="known-cluster"><option value="a"></option><option value="b"></option></datalist>'
        assert offered in page
        assert '<datalist id="known-team"><option value="speech"></option></datalist>' in page
        assert offered in client.get("/nodes").text
    with guarded.client(guarded.token("read", teams=["speech"], name="of a team")) as client:
        assert (
            'value="b"' not in client.get("/").text + client.get("/nodes").text + client.get("/reports/2026-W46").text
        )
