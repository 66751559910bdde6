"""The page of the audit log: who changed what, for administrators."""

import re
from datetime import timedelta
from pathlib import Path
from typing import get_args

from fastapi.testclient import TestClient

import service
from service.feedback.records import FeedbackKind
from service.web.pages.display_names import table
from service.web.pages.operations.audit_log import page_of, shown
from tests.service.web.world import NOW, World, event, lines


def test_the_page_shows_who_changed_what_and_links_what_has_a_page(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    failure = client.get("/api/v1/failures").json()["items"][0]["id"]
    client.post(f"/api/v1/failures/{failure}:hold", json={"comment": "I look at it"})
    client.post("/api/v1/automation:stop", json={"reason": "drill"})
    page = client.get("/audit-log").text.partition("<tbody>")[2]
    assert page.index("switched automation") < page.index("held a job"), "newest first"
    assert f'<a href="/failures/{failure}">failure/{failure}</a>' in page
    assert "I look at it" in page
    assert "this machine" in page
    only = client.get(f"/audit-log?subject=failure/{failure}").text.partition("<tbody>")[2]
    assert "held a job" in only
    assert "switched automation" not in only
    assert "No entry matches all of these filters." in client.get("/audit-log?subject=failure/999").text


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


def test_a_value_without_words_has_no_label(world: World, client: TestClient) -> None:
    with world.store.unit_of_work() as work:
        work.audit_log.append("kofi", "verdict.fix", "failure/7", before={"fixed_by": None}, after={"fixed_by": "M4"})
    page = client.get("/audit-log").text.partition("<tbody>")[2]
    assert '<span class="unit">after: </span>fixed by System Reconfiguration' in page
    assert "before: " not in page


def test_only_administrators_have_it(guarded: World) -> None:
    with guarded.client(guarded.token("read", "act")) as client:
        assert client.get("/audit-log").status_code == 403
        assert "/audit-log" not in client.get("/").text
    with guarded.client(guarded.token("admin")) as client:
        assert 'href="/audit-log"' in client.get("/settings").text


def test_values_are_words() -> None:
    assert shown({"side": "user", "cause": None, "nodes": ["a", "b"]}) == "side user, nodes a, b"
    assert shown({"cause": "SYS.5", "fixed_by": "M1"}) == "cause Transient Service Outage, fixed by Job Resubmission"
    assert shown({"stopped": True}) == "stopped yes"
    assert shown({"state": "resolved", "did": "resolved it"}) == "state resolved, resolved it"
    assert page_of("group/7") == "/groups/7"
    assert page_of("node/orion/gpu018") is None
    assert page_of("failure/7/../../x") is None


def test_every_kind_of_entry_has_words_on_the_page() -> None:
    """The kinds are read from the source, where the audit log is written."""
    kind = re.compile(r"audit_log\.append\(\s*[^,()]+,\s*\"([a-z_.]+)\"")
    source = Path(service.__file__).parent
    found = {what for file in source.rglob("*.py") for what in kind.findall(file.read_text(encoding="utf-8"))}
    found |= {f"verdict.{one}" for one in get_args(FeedbackKind)} | {"login", "token.address", "password.changed"}
    assert len(found) > 30
    assert found <= set(table()["audit"])


def test_the_api_has_the_entries_of_the_page_in_pages(world: World, client: TestClient) -> None:
    with world.store.unit_of_work() as work:
        for number in range(3):
            work.audit_log.append("ana", "node.repaired", f"node/orion/gpu{number}", after="riser replaced")
    first = client.get("/api/v1/audit-log?limit=2").json()
    assert [one["subject"] for one in first["items"]] == ["node/orion/gpu2", "node/orion/gpu1"]
    assert first["items"][0] | {"at": ""} == {
        "id": 3, "at": "", "who": "ana", "what": "node.repaired", "subject": "node/orion/gpu2",
        "before": None, "after": "riser replaced",
    }  # fmt: skip
    last = client.get("/api/v1/audit-log", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [one["subject"] for one in last["items"]] == ["node/orion/gpu0"]
    assert last["next_cursor"] is None
    [one] = client.get("/api/v1/audit-log?subject=node/orion/gpu1").json()["items"]
    assert one["id"] == 2
    assert client.get("/api/v1/audit-log?cursor=x").status_code == 422


def test_the_api_gives_entries_to_administrators_only(guarded: World) -> None:
    with guarded.client(guarded.token("read", "act")) as client:
        assert client.get("/api/v1/audit-log").status_code == 403
    with guarded.client(guarded.token("admin")) as client:
        assert client.get("/api/v1/audit-log").status_code == 200


def test_entries_are_narrowed_to_a_person_an_action_and_a_period(world: World, client: TestClient) -> None:
    for hours, who, what in ((0, "ana", "node.repaired"), (30, "bo", "node.repaired"), (30, "ana", "token.made")):
        world.clock.at = NOW + timedelta(hours=hours)
        with world.store.unit_of_work() as work:
            work.audit_log.append(who, what, f"subject of {who} after {hours} h")

    def found(address: str) -> list[str]:
        rows = client.get(address).text.partition("<tbody>")[2]
        return re.findall(r"subject of [a-z]+ after \d+ h(?=</a>)", rows)

    assert found("/audit-log?who=ana") == ["subject of ana after 30 h", "subject of ana after 0 h"]
    assert found("/audit-log?who=ana&what=token.made") == ["subject of ana after 30 h"]
    assert found("/audit-log?what=node.repaired&since=24h") == ["subject of bo after 30 h"]
    assert found("/audit-log?until=2026-11-21") == ["subject of ana after 0 h"]
    shown_page = client.get("/audit-log?what=token.made&since=24h").text
    assert '<option value="token.made" selected>created a token</option>' in shown_page
    assert '<input type="hidden" name="since" value="24h">' in shown_page, "the filter keeps the period"
    [one] = client.get("/api/v1/audit-log?who=ana&since=2026-11-21T00:00:00Z").json()["items"]
    assert one["what"] == "token.made"


def test_a_wrong_time_of_the_audit_log_is_named_on_its_page(client: TestClient) -> None:
    answer = client.get("/audit-log?since=yesterday")
    assert answer.status_code == 422
    assert "since: expected a time" in answer.text
    assert "Correct the time above" in answer.text
    assert client.get("/api/v1/audit-log?since=yesterday").status_code == 422
