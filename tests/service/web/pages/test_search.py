"""The search box, the job filter, navigation, and sortable columns."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.web.auth import Principal
from service.web.pages.navigation import navigation
from service.web.sessions import COOKIE, LIFETIME
from tests.service.web.world import NOW, World, event, lines, log

XID = [log("fine\nNVRM: Xid 79, GPU has fallen off the bus", 1)]


@pytest.fixture
def stocked(client: TestClient) -> TestClient:
    earlier = (NOW - timedelta(hours=1)).isoformat()
    events = [
        event("900049"),
        event("77", user="bo", name="bert", logs=XID, ended_at=earlier),
        event("78", user="bo", name="bert", ended_at=earlier, nodes=["gpu020"]),
    ]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    return client


def test_a_job_id_opens_its_failure(stocked: TestClient) -> None:
    [row] = stocked.get("/api/v1/failures?job=900049").json()["items"]
    answer = stocked.get("/search?q=900049")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/failures/{row['id']}")


@pytest.mark.parametrize(
    ("wanted", "address"),
    [
        ("bert", "/failures?job=bert"),
        ("bo", "/failures?user=bo"),
        ("bo&since=7d", "/failures?since=7d&user=bo"),
        ("bert&since=1h", "/failures?job=bert"),
        ("gpu020", "/failures?node=gpu020"),
        ("1:xid", "/failures?group=1%3Axid"),
        ("group 7", "/groups/7"),
        ("flash_attn", "/failures?q=flash_attn"),
        ("flash_attn&since=7d", "/failures?since=7d&q=flash_attn"),
        ("bo xid", "/failures?user=bo&q=xid"),
        ("xid gpu018", "/failures?node=gpu018&q=xid"),
        ("xid nobody", "/failures?q=xid+nobody"),
        ("job bert", "/failures?job=bert"),
        ("job nothing", "/failures?q=job+nothing"),
        ("buggy code&since=7d", "/failures?since=7d&cause=USER.1"),
        ("HW.GPU.2", "/failures?cause=HW.GPU.2"),
        ("GPU fell off the bus", "/groups/2"),
        ("gpu fell off the bus (Xid 79) on gpu018", "/groups/2"),
        ("", "/failures"),
    ],
)
def test_the_box_finds_names_users_nodes_kinds_and_words(stocked: TestClient, wanted: str, address: str) -> None:
    assert stocked.get(f"/search?q={wanted}").headers["location"] == address


def test_an_empty_list_says_what_was_looked_for(stocked: TestClient) -> None:
    assert "No log of a stored failure contains these words." in stocked.get("/failures?q=nothere").text
    assert (
        "No log of a failure in this period contains these words." in stocked.get("/failures?q=nothere&since=7d").text
    )
    assert "Remove one of them above." in stocked.get("/failures?q=nothere&side=user").text


@pytest.mark.parametrize(
    ("query", "jobs"),
    [
        ("job=77", ["77"]),
        ("job=bert", ["77", "78"]),
        ("job=bert&cluster=orion", ["77", "78"]),
        ("job=bert&cluster=vega", []),
        ("job=bert&q=xid", ["77"]),
        ("job=bert&side=user", ["78"]),
        ("job=nothing", []),
    ],
)
def test_failures_are_filtered_by_job(stocked: TestClient, query: str, jobs: list[str]) -> None:
    found = stocked.get(f"/api/v1/failures?{query}").json()["items"]
    assert sorted(row["job_id"] for row in found) == jobs
    shown = stocked.get(f"/failures?{query}").text
    assert all(f"/ {job}<" in shown for job in jobs)


def test_every_page_has_the_search_box_and_three_groups_of_pages(stocked: TestClient) -> None:
    for address in ("/", "/failures", "/groups", "/nodes", "/model", "/settings"):
        shown = stocked.get(address).text
        assert 'role="search"' in shown, address
        assert [name for name in ("Triage", "Fleet", "Quality") if f">{name}</span>" in shown] == [
            "Triage",
            "Fleet",
            "Quality",
        ], address


def test_the_time_range_is_kept_from_page_to_page(stocked: TestClient) -> None:
    shown = stocked.get("/failures?since=7d&user=bo").text
    header = shown.partition("</header>")[0]
    assert 'href="/?since=7d"' in header
    assert '<input type="hidden" name="since" value="7d">' in header
    assert re.search(r'href="/failures\?since=28d&amp;user=bo"', header)
    assert 'aria-current="true"><span class="last">last </span>7 days' in header


def test_columns_are_sorted_by_their_headers(stocked: TestClient) -> None:
    shown = stocked.get("/failures?user=bo").text
    assert 'aria-sort="descending"><a href="/failures?user=bo&amp;sort=ended_at">Ended' in shown
    by_cost = stocked.get("/failures?user=bo&sort=-gpu_hours_lost").text
    assert re.search(r'<th class="n" aria-sort="descending"><a [^>]*>GPU-h', by_cost)


def headers(page: str) -> dict[str, tuple[str, str]]:
    """The sortable columns of a list: the order that is shown (or nothing), and the target of the link."""
    found = re.findall(r'<th(?: class="n")?(?: aria-sort="(\w+)")?><a href="([^"]*)">([\w -]+?)(?: <span|</a>)', page)
    return {label: (order, target.replace("&amp;", "&")) for order, target, label in found}


def test_columns_of_groups_are_sorted_by_their_headers(stocked: TestClient) -> None:
    assert headers(stocked.get("/groups?user=bo").text) == {
        "GPU-h": ("", "/groups?user=bo&sort=-gpu_hours_lost"),
        "Last": ("descending", "/groups?user=bo"),
    }
    by_cost = stocked.get("/groups?sort=-gpu_hours_lost&limit=1").text
    assert headers(by_cost) == {
        "GPU-h": ("descending", "/groups?sort=-gpu_hours_lost&limit=1"),
        "Last": ("", "/groups?limit=1"),
    }
    assert headers(stocked.get("/").text) == {}, "the groups of the overview have one order"


def test_own_failures_are_one_link_away(guarded: World) -> None:
    token = guarded.token("read", name="bo")
    with guarded.client(token) as client:
        assert client.get("/mine").headers["location"] == "/failures?user=bo"
        assert 'href="/mine"' in client.get("/").text


@pytest.mark.parametrize(
    ("users", "list_of"),
    [((), "user=ana.berg"), (("aberg",), "user=aberg"), (("orion/aberg", "ana"), "user=ana"), (("orion/a",), "user=a")],
)
def test_own_failures_are_those_of_the_names_under_which_the_jobs_run(
    guarded: World, users: tuple[str, ...], list_of: str
) -> None:
    client = guarded.client()
    with guarded.store.unit_of_work() as work:
        account = work.accounts.create("ana.berg", "viewer", users=users)
        client.cookies.set(COOKIE, work.sessions.log_in(account_id=account.id, lasts=LIFETIME))
    location = client.get("/mine").headers["location"]
    assert location == f"/failures?{list_of}" + ("&cluster=orion" if users == ("orion/a",) else "")


def test_settings_are_offered_to_administrators_only() -> None:
    names = [label for _, pages in navigation(Principal("a", frozenset({"read"}), "cookie")) for _, label, _ in pages]
    assert "Settings" not in names
    assert "My failures" in names
    admin = navigation(Principal("a", frozenset({"admin"}), "open"))
    assert "Settings" in [label for _, pages in admin for _, label, _ in pages]


def test_a_job_copied_from_a_page_and_an_incident_are_found(stocked: TestClient) -> None:
    [row] = stocked.get("/api/v1/failures?job=77").json()["items"]
    for text, address in (
        ("orion / 77", f"/failures/{row['id']}"),
        ("vega / 77", "/failures?job=77&cluster=vega"),
        ("I-3", "/incidents/3"),
        ("i-x", "/failures?q=i-x"),
    ):
        assert stocked.get("/search", params={"q": text}).headers["location"] == address


def test_a_job_without_a_failure_is_said_to_have_succeeded(stocked: TestClient) -> None:
    fine = event("500", user="cy", status="succeeded", logs=[], attempt=2)
    assert stocked.post("/api/v1/events", content=lines(fine)).json()["accepted"] == 1
    for text in ("500", "orion / 500"):
        where = stocked.get("/search", params={"q": text}).headers["location"]
        page = stocked.get(where).text
        assert "orion / 500</span>, attempt 2 <strong>succeeded</strong>" in page
        assert "only failures have one" in page
    assert "succeeded</strong>" not in stocked.get("/failures?job=501").text
    assert "succeeded</strong>" not in stocked.get("/failures?job=500&cluster=vega").text


def test_who_may_not_see_a_job_does_not_learn_how_it_ended(guarded: World) -> None:
    with guarded.client(guarded.token("ingest")) as sender:
        fine = event("500", team="vision", status="succeeded", logs=[])
        assert sender.post("/api/v1/events", content=lines(fine)).json()["accepted"] == 1
    for team, where in (("vision", "/failures?job=500"), ("another", "/failures?q=500")):
        with guarded.client(guarded.token("read", teams=[team], name=team)) as client:
            assert client.get("/search?q=500").headers["location"] == where
            assert ("succeeded</strong>" in client.get("/failures?job=500").text) == (team == "vision")
