"""Boxes of the failures list: the same said of many at once, by what a browser without scripts sends."""

import re

import pytest
from fastapi.testclient import TestClient

from tests.service.web.access.test_auth import form_token
from tests.service.web.access.test_people import log_in, person
from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import World, event, lines

HOSTILE = '"><script>alert(1)</script>{{ 7*7 }}\u202e'


@pytest.fixture
def stocked(client: TestClient) -> TestClient:
    result = client.post("/api/v1/events", content=lines(*(event(str(n)) for n in range(5)))).json()
    assert result["accepted"] == 5
    return client


def boxes(page: str) -> list[str]:
    return re.findall(r'<input type="checkbox" name="failure" value="([0-9.]+)"', page)


def test_those_ticked_are_confirmed_and_the_filters_stay(stocked: TestClient) -> None:
    ticked = boxes(stocked.get("/failures?side=user").text)
    assert len(ticked) == 5
    page = post(stocked, "/feedback", kind="confirm", failure=ticked[:2], back="?side=user", cause="SYS.5")
    assert "2 verdicts confirmed." in words(page)
    assert 'href="/failures" title="remove this filter"><span>side' in page
    assert {row["cause"] for row in stocked.get("/api/v1/failures").json()["items"]} == {"USER.1"}


def test_those_ticked_are_corrected_in_side_cause_and_symptom_at_once(stocked: TestClient) -> None:
    ticked = boxes(stocked.get("/failures").text)
    page = post(stocked, "/feedback", kind="correct", failure=ticked[:3], cause="SYS.5", symptom="none", note="seen")
    assert "3 verdicts corrected." in words(page)
    found = [row["cause"] for row in stocked.get("/api/v1/failures").json()["items"]]
    assert sorted(found) == ["SYS.5"] * 3 + ["USER.1"] * 2
    page = post(stocked, "/feedback", kind="correct", failure=ticked[3:], cause="hardware")
    assert [row["side"] for row in stocked.get("/api/v1/failures").json()["items"]].count("hardware") == 2


def test_a_correction_of_many_is_undone_at_once(stocked: TestClient) -> None:
    ticked = boxes(stocked.get("/failures").text)
    page = post(stocked, "/feedback", kind="correct", failure=ticked[:3], cause="SYS.5", back="?side=system")
    [judged] = re.findall(r'action="/feedback/undo">.*?name="judged" value="([0-9.]+)"', page)
    assert sorted(judged.split(".")) == sorted(one.split(".")[0] for one in ticked[:3])
    page = post(stocked, "/feedback/undo", judged=judged, back="?side=system")
    assert "3 verdicts taken back." in words(page)
    assert "side</span> system" in page, "the filters stay"
    assert 'action="/feedback/undo"' not in page
    assert {row["cause"] for row in stocked.get("/api/v1/failures").json()["items"]} == {"USER.1"}
    page = post(stocked, "/feedback/undo", judged=judged)
    assert "0 verdicts taken back; 3 unchanged because" in words(page)
    assert stocked.get("/failures?judged=1;2").status_code == 422


def test_a_failure_with_a_newer_verdict_is_skipped_and_counted(stocked: TestClient) -> None:
    ticked = boxes(stocked.get("/failures").text)
    number = ticked[0].split(".")[0]
    stocked.post(f"/api/v1/failures/{number}/feedback", json={"kind": "correct", "cause": "SYS.5"})
    page = post(stocked, "/feedback", kind="correct", failure=ticked[:3], cause="USER.4")
    assert (
        "2 verdicts corrected; 1 unchanged because it was modified or removed in the meantime. Check them again."
        in words(page)
    )
    assert stocked.get(f"/api/v1/failures/{number}").json()["failure"]["cause"] == "SYS.5"


def test_all_boxes_are_ticked_by_a_link(stocked: TestClient) -> None:
    page = stocked.get("/failures?side=user")
    assert " checked>" not in page.text
    link = re.search(r'href="([^"]+)">select all 5<', page.text)
    assert link is not None
    assert stocked.get(link[1].replace("&amp;", "&")).text.count(" checked>") == 5


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "confirm"},
        {"kind": "correct", "failure": "1.1"},
        {"kind": "correct", "failure": "1.1", "cause": "NO.SUCH"},
        {"kind": "confirm", "failure": "1"},
        {"kind": "confirm", "failure": HOSTILE},
        {"kind": HOSTILE, "failure": "1.1"},
        {"kind": "correct", "failure": "1.1", "cause": HOSTILE},
        {"kind": "correct", "failure": "1.1", "cause": "user", "symptom": HOSTILE},
    ],
)
def test_an_invalid_form_is_reported(stocked: TestClient, form: dict[str, str]) -> None:
    form["form_token"] = form_token(stocked)
    answer = stocked.post("/feedback", data=form, headers={"Origin": "http://127.0.0.1:8080"})
    assert answer.status_code == 422
    assert "<script>alert" not in answer.text
    assert {row["version"] for row in stocked.get("/api/v1/failures").json()["items"]} == {1}


@pytest.mark.parametrize("query", ["taken=x", "left=-1", "ticked=<script>", "taken=501"])
def test_a_message_is_not_made_of_what_the_address_says(stocked: TestClient, query: str) -> None:
    answer = stocked.get(f"/failures?notice=confirm&{query}")
    assert answer.status_code == 422
    assert "<script>alert" not in answer.text


def test_hostile_names_stay_inside_the_box_s_label(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event(HOSTILE)))
    page = client.get(f"/failures?q=flash_attn&sort=-ended_at&user={HOSTILE}").text
    assert "<script>alert" not in page
    page = client.get("/failures?ticked=all").text
    assert "<script>alert" not in page
    assert boxes(page) == ["1.1"]
    page = post(client, "/feedback", kind="confirm", failure="1.1", back=f"?user={HOSTILE}", note=HOSTILE)
    assert "<script>alert" not in page


def test_boxes_are_there_for_those_who_judge_everything(guarded: World) -> None:
    with guarded.client(guarded.token("ingest")) as sender:
        sender.post("/api/v1/events", content=lines(event("1")))
    person(guarded, "vic", "viewer")
    person(guarded, "ola", "operator")
    person(guarded, "tom", "operator", teams=("vision",))
    for name, shown in (("vic", 0), ("ola", 1), ("tom", 0)):
        with guarded.client() as client:
            assert log_in(client, name) == 303
            assert len(boxes(client.get("/failures").text)) == shown, name
