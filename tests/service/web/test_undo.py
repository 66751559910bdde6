"""Confirming, correcting, holding and excluding are undone in place."""

import re
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient

from classifiers import taxonomy
from service.feedback import label_review
from service.feedback.records import FeedbackInput, Labels
from service.web.sessions import FORM_COOKIE
from tests.service.automation.world import job
from tests.service.web.api.test_automation_api import XID, acting, hook, lease, tell
from tests.service.web.test_automation_pages import post, words
from tests.service.web.world import World, event, lines

__all__ = ["acting", "hook"]  # fixtures


def failure_of(client: TestClient) -> int:
    [number] = [one["id"] for one in client.get("/api/v1/failures").json()["items"]]
    return int(number)


def refused(client: TestClient, path: str) -> int:
    client.get("/automation")
    form = {"form_token": client.cookies[FORM_COOKIE]}
    return client.post(path, data=form, headers={"Origin": "http://127.0.0.1:8080"}).status_code


def test_a_correction_is_undone_and_the_verdict_before_it_is_current_again(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = failure_of(client)
    page = post(client, f"/failures/{number}/feedback", kind="correct", cause="SYS.5")
    assert f'action="/failures/{number}/feedback/undo"' in page
    assert client.get(f"/api/v1/failures/{number}").json()["failure"]["cause"] == "SYS.5"
    page = post(client, f"/failures/{number}/feedback/undo")
    assert "Undone. The verdict before it is current again." in words(page)
    found = client.get(f"/api/v1/failures/{number}").json()
    assert (found["failure"]["cause"], found["failure"]["source"]) == ("USER.1", "machine")
    assert [one["version"] for one in found["versions"]] == [3, 2, 1]
    assert client.get(f"/api/v1/failures/{number}/feedback").json()["items"] == []
    assert client.get("/api/v1/labels").text.strip() == ""


def test_only_the_own_judgement_of_the_last_hour_is_undone(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = failure_of(client)
    undo = f"/failures/{number}/feedback/undo"
    assert refused(client, undo) == 409
    post(client, f"/failures/{number}/feedback", kind="confirm")
    world.clock.at += timedelta(hours=2)
    assert refused(client, undo) == 409
    post(client, f"/failures/{number}/feedback", kind="correct", cause="SYS.5")
    with world.store.unit_of_work() as work:
        newer = work.failures.get(number).verdict
        assert newer is not None
        work.failures.revise(number, newer, source="person")
    assert refused(client, undo) == 409


def test_a_protected_label_is_not_undone(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = failure_of(client)
    post(client, f"/failures/{number}/feedback", kind="confirm")
    with world.store.unit_of_work() as work:
        assert work.feedback.protect(number, golden=True)
    assert refused(client, f"/failures/{number}/feedback/undo") == 409


def test_a_hold_is_lifted_and_the_request_waits_again(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    number = failure_of(hook)
    page = post(hook, f"/failures/{number}/hold")
    assert "Lift the hold" in page
    assert lease(hook) == []
    page = post(hook, f"/failures/{number}/lift")
    assert "Undone. Automation may resubmit the job again." in words(page)
    assert "Lift the hold" not in page
    [given] = lease(hook)
    assert given["job_id"] == "1"


def test_an_excluded_job_is_allowed_again(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    number = failure_of(hook)
    assert "Allow again" in post(hook, f"/failures/{number}/never")
    assert "Never resubmitted" not in words(post(hook, f"/failures/{number}/lift"))
    assert "Undone" in words(post(hook, f"/failures/{number}/lift")), "once more changes nothing"


def group_of(client: TestClient, text: str) -> dict[str, Any]:
    [found] = [one for one in client.get("/api/v1/groups").json()["items"] if text in one["title"]]
    return dict(found)


def verdicts(client: TestClient) -> dict[str, tuple[str, str]]:
    """Cause and source of the current verdict of each job."""
    return {one["job_id"]: (one["cause"], one["source"]) for one in client.get("/api/v1/failures").json()["items"]}


def test_the_label_of_a_group_is_undone_with_those_of_its_failures(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2"), event("3")))
    before, number = verdicts(client), group_of(client, "flash_attn")["id"]
    assert set(before.values()) == {("USER.1", "machine")}
    page = post(client, f"/groups/{number}/feedback", kind="correct", cause="SYS.5")
    assert f'action="/groups/{number}/feedback/undo"' in page
    assert set(verdicts(client).values()) == {("SYS.5", "person")}
    client.post("/api/v1/events", content=lines(event("4")))
    page = words(post(client, f"/groups/{number}/feedback/undo"))
    assert "removed from 3 failures. Their previous verdicts apply again." in page
    assert verdicts(client) == before | {"4": ("USER.1", "machine")}
    assert client.get("/api/v1/labels").text.strip() == ""
    group = group_of(client, "flash_attn")
    assert (group["cause"], group["labelled_at"], group["failures"]) == ("USER.1", None, 4)
    notes = [one["text"] for one in client.get(f"/api/v1/groups/{number}").json()["group"]["notes"]]
    assert notes == ["withdrew the label SYS.5 from 3 failures", "labelled 3 failures system, SYS.5"]
    with world.store.reading() as reading:
        entries = reading.audit_log.page(limit=10).items
    assert [one.what for one in entries if one.what.startswith(("group", "label."))] == [
        "group.changed",
        *["label.withdrawn"] * 3,
    ]
    assert refused(client, f"/groups/{number}/feedback/undo") == 409, "once"


def test_a_label_that_waits_for_a_second_person_says_so_and_is_undone(client: TestClient) -> None:
    jobs = [str(number) for number in range(label_review.MOST_AT_ONCE + 1)]
    client.post("/api/v1/events", content=lines(*(event(job) for job in jobs)))
    number = group_of(client, "flash_attn")["id"]
    page = words(post(client, f"/groups/{number}/feedback", kind="correct", cause="SYS.5"))
    assert "until a second person gives the same label" in page
    assert f"The label {taxonomy.load().causes['SYS.5'].title} of this machine" in page
    assert "is not in effect yet: it waits for a second person" in page
    assert "labelled by a person" not in page
    assert set(verdicts(client).values()) == {("USER.1", "machine")}
    page = post(client, f"/groups/{number}/feedback/undo")
    title = taxonomy.load().causes["SYS.5"].title
    assert f"Label {title} removed from {len(jobs)} failures." in words(page)
    assert client.get("/api/v1/feedback").json()["items"] == []


def test_failures_that_were_judged_since_then_keep_their_label(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2"), event("3")))
    number = group_of(client, "flash_attn")["id"]
    post(client, f"/groups/{number}/feedback", kind="correct", cause="SYS.5")
    ids = {one["job_id"]: one["id"] for one in client.get("/api/v1/failures").json()["items"]}
    world.clock.at += timedelta(minutes=1)
    post(client, f"/failures/{ids['1']}/feedback", kind="correct", cause="USER.4")
    with world.store.unit_of_work() as work:
        assert work.feedback.protect(ids["2"], golden=True)
    page = words(post(client, f"/groups/{number}/feedback/undo"))
    assert "from 1 failure. Its previous verdict applies again. 2 failures keep their label" in page
    assert verdicts(client) == {"1": ("USER.4", "person"), "2": ("SYS.5", "person"), "3": ("USER.1", "machine")}


def test_only_the_own_latest_label_of_the_last_hour_is_undone(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = group_of(client, "flash_attn")["id"]
    undo = f"/groups/{number}/feedback/undo"
    assert refused(client, "/groups/999/feedback/undo") == 404
    assert refused(client, undo) == 409
    post(client, f"/groups/{number}/feedback", kind="confirm")
    world.clock.at += timedelta(hours=2)
    assert refused(client, undo) == 409
    post(client, f"/groups/{number}/feedback", kind="correct", cause="SYS.5")
    world.clock.at += timedelta(minutes=1)
    world.services.feedback.add_to_group(number, "ana", FeedbackInput("correct", Labels("user", "USER.4")))
    assert refused(client, undo) == 409
    assert verdicts(client)["1"] == ("USER.4", "person")


def test_a_label_before_the_undone_one_is_current_again(client: TestClient, world: World) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = group_of(client, "flash_attn")["id"]
    post(client, f"/groups/{number}/feedback", kind="correct", cause="USER.4")
    labelled_at = group_of(client, "flash_attn")["labelled_at"]
    world.clock.at += timedelta(minutes=1)
    post(client, f"/groups/{number}/feedback", kind="correct", cause="SYS.5")
    post(client, f"/groups/{number}/feedback/undo")
    group = group_of(client, "flash_attn")
    assert (group["cause"], group["labelled_at"]) == ("USER.4", labelled_at)
    assert verdicts(client)["1"] == ("USER.4", "person")


def test_the_list_of_labels_to_give_says_that_a_label_waits_for_a_second_person(client: TestClient) -> None:
    jobs = [str(number) for number in range(label_review.MOST_AT_ONCE + 1)]
    client.post("/api/v1/events", content=lines(*(event(job) for job in jobs)))
    [first] = client.get("/api/v1/label-queue").json()["items"]
    page = post(client, "/feedback/next", group=first["group"], failure=first["failure"], cause="SYS.5")
    assert "until a second person gives the same label" in words(page)
    assert f'action="/groups/{first["group"]}/feedback/undo"' in page
    reason = "The label waits for a second person: it was given to 21 failures at once."
    for path in ("/feedback", f"/failures/{first['failure']}"):
        assert reason in words(client.get(path).text), path


def test_a_person_can_say_that_they_cannot_tell_wherever_they_are_asked(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1")))
    number = client.get("/api/v1/failures").json()["items"][0]["id"]
    client.post(f"/api/v1/failures/{number}/feedback", json={"kind": "contest"})
    for back in ("", "/feedback"):
        page = client.get(back or f"/failures/{number}").text
        assert re.search(r'<button name="kind" value="unsure"[^>]*>Cannot tell</button>', page)
        answer = post(client, f"/failures/{number}/feedback", kind="unsure", cause="SYS.5", back=back)
        assert "Saved: the cause is unclear." in words(answer)
    assert client.get("/api/v1/labels").text.strip() == ""


def test_a_group_whose_cause_a_person_cannot_determine_keeps_its_verdict(client: TestClient) -> None:
    client.post("/api/v1/events", content=lines(event("1"), event("2")))
    before, number = verdicts(client), group_of(client, "flash_attn")["id"]
    assert [one["group"] for one in client.get("/api/v1/label-queue").json()["items"]] == [number]
    page = words(post(client, f"/groups/{number}/feedback", kind="unsure", cause="SYS.5"))
    assert "the cause is unclear" in page
    assert verdicts(client) == before
    assert group_of(client, "flash_attn")["labelled_at"] is None
    assert client.get("/api/v1/label-queue").json()["items"] == []
