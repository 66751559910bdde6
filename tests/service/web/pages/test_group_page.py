"""Forms of the page of a group and of the list: what they offer, and what they say was done."""

import re
from datetime import timedelta

from fastapi.testclient import TestClient

from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import NOW, World, event, lines, log


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
            assert "NVRM" not in page.partition("Why these failures")[0], path
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
    queues = shown.partition("queue ")[2].partition(" team")[0]
    users = shown.partition(" user ")[2].partition(" Times")[0].strip()
    # 4 of 10 failures of the group and 4 of 40 of all; 6 of 10 and 36 of 40.
    assert queues == "debug 4 (4.0 times as often), usual 6 (0.7 times as often)"
    assert users == "bo 4 (4.0 times as often), ana 6 (0.7 times as often)"
    assert "compared with all failures of the last 28 days" in shown
