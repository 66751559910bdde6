"""The page of the audit log: who changed what, for administrators."""

from fastapi.testclient import TestClient

from service.web.pages.operations.audit_log import page_of, shown
from tests.service.web.world import World, event, lines


def test_the_page_shows_who_changed_what_and_links_what_has_a_page(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    failure = client.get("/api/v1/failures").json()["items"][0]["id"]
    client.post(f"/api/v1/failures/{failure}:hold", json={"comment": "I look at it"})
    client.post("/api/v1/automation:stop", json={"reason": "drill"})
    page = client.get("/audit-log").text
    assert page.index("automation.turned") < page.index("failure.held"), "newest first"
    assert f'<a href="/failures/{failure}">failure/{failure}</a>' in page
    assert "I look at it" in page
    assert "this machine" in page
    only = client.get(f"/audit-log?subject=failure/{failure}").text
    assert "failure.held" in only
    assert "automation.turned" not in only
    assert "No entry has this subject." in client.get("/audit-log?subject=failure/999").text


def test_the_list_continues_on_further_pages_and_ignores_a_wrong_cursor(world: World, client: TestClient) -> None:
    with world.store.unit_of_work() as work:
        for number in range(60):
            work.audit_log.append("ana", "node.repaired", f"node/orion/gpu{number:03d}")
    first = client.get("/audit-log").text
    assert "gpu059" in first
    assert "gpu005" not in first
    where = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "gpu005" in client.get(where).text
    for wrong in ("x", "²", "9" * 60):
        assert "gpu059" in client.get("/audit-log", params={"cursor": wrong}).text


def test_only_administrators_have_it(guarded: World) -> None:
    with guarded.client(guarded.token("read", "act")) as client:
        assert client.get("/audit-log").status_code == 403
        assert "/audit-log" not in client.get("/").text
    with guarded.client(guarded.token("admin")) as client:
        assert 'href="/audit-log"' in client.get("/settings").text


def test_values_are_words() -> None:
    assert shown({"side": "user", "cause": None, "nodes": ["a", "b"]}) == "side user, nodes a, b"
    assert page_of("group/7") == "/groups/7"
    assert page_of("node/orion/gpu018") is None
    assert page_of("failure/7/../../x") is None
