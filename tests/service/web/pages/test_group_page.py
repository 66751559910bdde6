"""Forms of the page of a group and of the list: what they offer, and what they say was done."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.web import group_views
from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import BY_WORD, HARDWARE, NOW, World, event, lines, log


def the_group(client: TestClient) -> int:
    [one] = client.get("/api/v1/groups").json()["items"]
    number: int = one["id"]
    return number


def test_no_split_is_offered_that_would_leave_the_group_empty(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2", user="bo")))
    page = client.get(f"/groups/{the_group(client)}").text
    assert re.findall(r'<option value="(\w+: \w+)">', page) == ["user: ana", "user: bo"]


def test_a_group_of_one_failure_can_not_be_split(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    assert "Split" not in client.get(f"/groups/{the_group(client)}").text


def test_an_empty_field_is_said_to_remove_the_assignee_or_the_ticket(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = the_group(client)
    assert "Assigned." in words(post(client, f"/groups/{number}/act", action="assign", to="bo"))
    page = words(post(client, "/groups/act", action="assign", group=number, to=" "))
    assert "Nobody is assigned any more." in page
    assert "Assigned." not in page
    assert "Ticket linked." in words(post(client, f"/groups/{number}/act", action="link", ticket="https://t/1"))
    assert "No ticket is linked any more." in words(post(client, f"/groups/{number}/act", action="link", ticket=""))


def test_users_beyond_those_that_are_listed_are_counted(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(*(event(str(n), user=f"user{n}") for n in range(11))))
    number = the_group(client)
    page = client.get(f"/groups/{number}").text
    assert f'<a href="/failures?group={number}">and 3 more</a>' in page


def test_a_group_has_the_same_name_on_every_page(client: TestClient) -> None:
    line = "Jul 27 21:05:16 gpu018 kernel: NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
    client.post("/api/v1/events", content=lines(event("1", logs=[log(line)])))
    number = the_group(client)
    named = []
    for path in ("/", "/groups", f"/groups/{number}", "/model", "/feedback/next"):
        page = client.get(path).text.partition("<main")[2].partition("<h2>The job</h2>")[0]
        if f"/groups/{number}" in page:
            named.append(path)
            assert "NVRM" not in page.partition("Which failures join")[0], path
            assert "GPU fell off the bus (Xid 79)" in page, path
    assert len(named) >= 3


def test_places_are_in_the_order_of_how_much_more_often_the_group_occurs_there(world: World) -> None:
    """Most failures of the group are in the usual queue, but its share is largest in the one with few failures."""
    ended = (NOW - timedelta(days=2)).isoformat()

    def failed(name: str, number: int, queue: str, line: str) -> list[dict[str, object]]:
        times = {"started_at": ended, "ended_at": ended}
        who = {"queue": queue, "user": "bo" if name == "b" else "ana"}
        return [event(f"{name}-{n}", logs=[log(line)], **who, **times) for n in range(number)]

    module, stale = "ModuleNotFoundError: No module named 'flash_attn'", "OSError: [Errno 116] Stale file handle"
    of_group = [*failed("a", 6, "usual", module), *failed("b", 4, "debug", module)]
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*of_group, *failed("c", 30, "usual", stale)))
        with world.store.unit_of_work() as work:
            work.rollups.recount(NOW)
        [number] = [one["id"] for one in client.get("/api/v1/groups").json()["items"] if one["failures"] == 10]
        shown = words(client.get(f"/groups/{number}").text).partition("Where it occurs")[2]
    shown = re.sub(r"\s+", " ", shown).replace(" ,", ",")
    queues = shown.partition("queue ")[2].partition(" user")[0]
    users = shown.partition(" user ")[2].partition(" team")[0].strip()
    # 4 of 10 failures of the group and 4 of 40 of all; 6 of 10 and 36 of 40.
    assert queues == "debug 4 (4.0 times as often), usual 6 (0.7 times as often)"
    assert users == "bo 4 (4.0 times as often), ana 6 (0.7 times as often)"
    assert "compared with all failures of the last 28 days" in shown


def test_a_node_and_an_image_are_compared_with_the_work_of_nodes_and_with_all_failures(world: World) -> None:
    """Twelve failures began on a node with a tenth of all work; ten had an image of a sixth of all failures."""
    ended = {"started_at": (NOW - timedelta(hours=9)).isoformat(), "ended_at": (NOW - timedelta(hours=1)).isoformat()}

    def ran(name: str, number: int, image: str, **more: object) -> list[dict[str, object]]:
        return [event(f"{name}-{n}", image=image, **ended, **more) for n in range(number)]

    lost = [log("NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.")]
    group = [*ran("a", 10, "torch:2.9", logs=lost), *ran("b", 2, "torch:2.8", logs=lost)]
    others = ran("c", 48, "torch:2.8", nodes=["gpu003"], logs=[log("KeyError: 'x'", node="gpu003")])
    good = ran("d", 60, "torch:2.8", nodes=["gpu004"], status="succeeded", logs=[])
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*group, *others, *good))
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
        [number] = [one["id"] for one in client.get("/api/v1/groups").json()["items"] if one["failures"] == 12]
        page = client.get(f"/groups/{number}").text
        api = client.get(f"/api/v1/groups/{number}").json()["group"]["facets"]
    shown = re.sub(r"\s+", " ", words(page).partition("Where it occurs")[2]).replace(" ,", ",")
    assert "suspected node gpu018 12 (10.0 times as often) image" in shown
    assert "image torch:2.9 10 (5.0 times as often), torch:2.8 2 (0.2 times as often) queue" in shown
    assert "Unusually often : node gpu018 (10.0 times), image torch:2.9 (5.0 times) ." in shown
    assert 'value="image:' not in page, "failures cannot be split by image"
    assert {"kind": "image", "name": "torch:2.9", "failures": 10} in api


def test_few_failures_are_never_said_to_be_unusual() -> None:
    for failures, of in ((1, 1), (4, 4), (1, 5), (2, 200)):
        assert group_views.place("x", failures, of, 0.01).lift is None or failures / of > 0.15
    assert group_views.place("x", 4, 4, 0.01).lift is None
    assert group_views.place("x", 3, 10, 0.2).lift is None
    sure, barely = group_views.place("x", 90, 100, 0.3), group_views.place("y", 5, 5, 0.3)
    assert sure.lift == pytest.approx(3.0)
    assert barely.lift == pytest.approx(1 / 0.3)
    assert sure.least > barely.least
    assert group_views.unusual({"user": [barely], "queue": [sure]}) == [("queue", sure)]


def test_the_advice_names_its_failure_and_that_the_job_has_succeeded_since(client: TestClient) -> None:
    lost = event("1", logs=[log("NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.")])
    client.post("/api/v1/events", content=lines(lost))
    number = the_group(client)

    def advice() -> str:
        page = client.get(f"/groups/{number}").text
        return words(page.partition('<div class="do">')[2].partition("</div>")[0])

    assert advice().strip().startswith("Latest failure: orion / 1 , 30 min ago . Advice: Resubmit now without gpu018.")
    began = (NOW - timedelta(minutes=20)).isoformat()
    again = event("1", attempt=1, status="succeeded", logs=[], started_at=began, ended_at=NOW.isoformat())
    client.post("/api/v1/events", content=lines(again))
    assert "Its job has succeeded since. The advice was: Resubmit now without gpu018." in advice()


def test_a_group_whose_causes_differ_says_which_one_is_the_most_frequent(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(job: str, hours: int) -> str:
        ended = (NOW - timedelta(hours=hours)).isoformat()
        xid = event(job, logs=[log("NVRM: Xid 79", 1)], started_at=ended, ended_at=ended)
        client.post("/api/v1/events", content=lines(xid))
        return words(client.get(f"/groups/{the_group(client)}").text)

    monkeypatch.setitem(BY_WORD, "Xid", replace(HARDWARE, cause="HW.GPU.1"))
    alone = put("1", 9)
    assert "Which failures join this one Later failures join this one with the same first error line" in alone
    assert " Cause: GPU Memory Fault . 1 failure of" in alone
    assert "Why these failures are grouped They have the same first error line" in put("2", 8)
    monkeypatch.setitem(BY_WORD, "Xid", replace(HARDWARE, cause="HW.GPU.2"))
    page = put("3", 7)
    assert "Side and cause of the newest failure: GPU Unavailability ; most often GPU Memory Fault (2 of 3)." in page


def test_the_days_of_a_group_end_today_or_where_an_older_group_ended(world: World) -> None:
    """A group that has been quiet for a week must not look as if it went on."""
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1")))
        number = the_group(client)

        def days() -> tuple[str, tuple[str, str]]:
            page = client.get(f"/groups/{number}").text
            heading = page.partition("<h2>Failures per day")[2].partition("</h2>")[0]
            [(first, last)] = re.findall(r'<p class="axis"><span>([^<]*)</span><span>([^<]*)</span>', page)
            return heading, (first, last)

        world.clock.at = NOW + timedelta(days=7)
        assert days() == ("", ("2026-10-31", "2026-11-27"))
        world.clock.at = NOW + timedelta(days=60)
        assert days() == (", until the last one", ("2026-10-24", "2026-11-20"))
