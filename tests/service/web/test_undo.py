"""Confirming, correcting, holding and excluding are undone in place."""

from datetime import timedelta

from fastapi.testclient import TestClient

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
