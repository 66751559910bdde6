"""What fixed it: said by the API and by forms, shown where it helps."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service import weeks
from service.reports.gather import gather
from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import NOW, World, event, lines, log

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."
ZONE = ZoneInfo("UTC")


def ids(client: TestClient) -> list[int]:
    return sorted(row["id"] for row in client.get("/api/v1/failures").json()["items"])


@pytest.fixture
def stocked(client: TestClient) -> TestClient:
    made = [event(f"x{n}", nodes=[f"x{n}"], logs=[log(XID, 1, node=f"x{n}")]) for n in range(2)]
    assert client.post("/api/v1/events", content=lines(*made)).json()["accepted"] == 2
    return client


def fixed_by(client: TestClient, number: int) -> Any:
    return (client.get(f"/api/v1/failures/{number}/feedback").json()["fixed_by"] or {}).get("code")


def test_a_fix_is_recorded_alone_or_with_a_judgement_and_removed(stocked: TestClient) -> None:
    first, second = ids(stocked)
    assert stocked.put(f"/api/v1/failures/{first}/fixed-by", json={"code": "M8"}).json() == {"code": "M8"}
    output = stocked.post(f"/api/v1/failures/{second}/feedback", json={"kind": "confirm", "fixed_by": "M4"})
    assert output.status_code == 200
    assert (fixed_by(stocked, first), fixed_by(stocked, second)) == ("M8", "M4")
    assert stocked.put(f"/api/v1/failures/{first}/fixed-by", json={"code": "none"}).status_code == 200
    assert fixed_by(stocked, first) is None


@pytest.mark.parametrize("code", ["M11", "M0", "m8", ""])
def test_what_is_none_of_the_ten_is_refused(stocked: TestClient, code: str) -> None:
    number = ids(stocked)[0]
    for field, answer in (
        ("code", stocked.put(f"/api/v1/failures/{number}/fixed-by", json={"code": code})),
        (
            "fixed_by",
            stocked.post(f"/api/v1/failures/{number}/feedback", json={"kind": "confirm", "fixed_by": code or "x"}),
        ),
    ):
        assert answer.status_code == 422
        assert "M1, M2" in answer.text
        assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert fixed_by(stocked, number) is None
    contest = {"kind": "contest", "fixed_by": "M8"}
    assert stocked.post(f"/api/v1/failures/{number}/feedback", json=contest).status_code == 422
    assert stocked.put("/api/v1/failures/999/fixed-by", json={"code": "M8"}).status_code == 404


def test_a_group_that_is_resolved_counts_once_for_its_newest_failure(stocked: TestClient) -> None:
    first, newest = ids(stocked)
    [group] = [one["id"] for one in stocked.get("/api/v1/groups").json()["items"]]
    wrong = stocked.post(f"/api/v1/groups/{group}/actions", json={"action": "resolve", "fixed_by": "M77"})
    assert wrong.status_code == 422
    done = stocked.post(f"/api/v1/groups/{group}/actions", json={"action": "resolve", "fixed_by": "M8"}).json()
    assert done["group"]["row"]["state"] == "resolved"
    assert done["group"]["notes"][0]["text"] == "resolved it by M8 Node De-commission"
    assert (fixed_by(stocked, first), fixed_by(stocked, newest)) == (None, "M8")
    output = stocked.post(f"/api/v1/groups/{group}/feedback", json={"kind": "confirm", "fixed_by": "M7"})
    assert len(output.json()["items"]) == 2
    assert (fixed_by(stocked, first), fixed_by(stocked, newest)) == (None, "M7")


def test_forms_say_it_and_pages_show_it(stocked: TestClient, world: World) -> None:
    first, newest = ids(stocked)
    page = words(post(stocked, f"/failures/{first}/fixed", fixed_by="M8"))
    assert "Later advice on failures of this cause takes it into account." in page
    assert "Fixed by M8 Node De-commission" in page
    other = words(stocked.get(f"/failures/{newest}").text)
    assert "Fix applied to a failure of the same group, orion / x0 : M8 Node De-commission" in other
    [group] = [one["id"] for one in stocked.get("/api/v1/groups").json()["items"]]
    assert 'name="fixed_by"' in stocked.get(f"/groups/{group}").text
    assert "resolved it by M4" in words(post(stocked, f"/groups/{group}/act", action="resolve", fixed_by="M4"))
    assert words(post(stocked, f"/groups/{group}/act", action="reopen"))
    post(stocked, f"/groups/{group}/act", action="resolve", fixed_by="")
    assert fixed_by(stocked, newest) == "M4"  # nothing said takes nothing back
    world.clock.at += timedelta(minutes=1)
    stocked.post("/api/v1/events", content=lines(event("x9", nodes=["x9"], logs=[log(XID, 1, node="x9")])))
    result = stocked.get(f"/failures/{ids(stocked)[-1]}").text
    assert "This resolved one such failure on this cluster." in result


def test_the_report_of_the_week_compares_it_with_the_paper(stocked: TestClient, world: World) -> None:
    first, newest = ids(stocked)
    for number in (first, newest):
        stocked.put(f"/api/v1/failures/{number}/fixed-by", json={"code": "M8"})
    facts = gather(world.store, weeks.of(NOW, ZONE), ZONE, NOW)
    assert facts.recorded_mitigations == {"M8": 2}
