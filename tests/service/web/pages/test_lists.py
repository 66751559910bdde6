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


def test_a_wrong_time_on_the_overview_shows_the_last_day_and_names_the_field(client: TestClient) -> None:
    put(client, event("1"))
    answer = client.get("/?since=yesterday")
    assert answer.status_code == 422
    assert "since: expected a time with zone" in answer.text
    assert "of 1 job failed" in re.sub(r"<[^>]+>", "", answer.text)


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
    with urllib.request.urlopen(f"{site}/live?after=1&{query}", timeout=10) as answer:
        for line in answer:
            if line.startswith(b"data:"):
                found: int = orjson.loads(line.removeprefix(b"data:"))["new"]
                return found
    raise AssertionError("the stream ended without an event")
