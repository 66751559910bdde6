"""The API that hooks and operators speak: shapes, states, tokens that are not theirs, times that are past."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from fastapi.testclient import TestClient

from service.automation.service import Automation
from service.feedback.service import Feedback
from service.logs.fetch import LogFetcher
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend.advise import Advisor
from service.telemetry import Telemetry
from service.web.app import create_app
from service.web.sessions import COOKIE, LIFETIME
from tests.service.automation.world import ByWord, job, rules
from tests.service.pipeline.diagnosis import diagnose_with
from tests.service.web.world import HERE, NOW, World, lines, make_world

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"
GONE = "OSError: [Errno 116] Stale file handle: '/scratch/u{n}/ckpt.pt'"
API = "/api/v1"


@pytest.fixture
def acting(tmp_path: Path) -> Iterator[World]:
    """A service whose policy opts every job in."""
    plain = make_world(tmp_path)
    store, clock, policy = plain.store, plain.clock, rules()
    automation = Automation(store, policy, clock, Telemetry())
    services = replace(
        plain.services,
        ingest=diagnose_with(
            DiagnosisTools(store, LogFetcher(()), ByWord(), policy, clock, Telemetry(), automation=automation)
        ),
        automation=automation,
        feedback=Feedback(store, clock, Advisor(policy, clock), automation.withdraw_unsupported, zone=ZoneInfo("UTC")),
    )
    yield World(store, clock, services, create_app(services))
    store.close()


@pytest.fixture
def hook(acting: World) -> Iterator[TestClient]:
    with acting.client() as client:
        yield client


def tell(client: TestClient, *events: dict[str, Any]) -> None:
    answer = client.post(f"{API}/events", content=lines(*events))
    assert answer.json()["accepted"] == len(events), answer.text


def lease(client: TestClient, **changes: Any) -> list[dict[str, Any]]:
    asked = {"hook": "slurm@login1", "cluster": "orion", "max": 10, "seconds": 60} | changes
    answer = client.post(f"{API}/resubmissions:lease", json=asked)
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def test_a_lease_says_all_that_a_hook_needs(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    assert given["cluster"] == "orion"
    assert (given["job_id"], given["attempt"], given["action"]) == ("1", None, "requeue")
    assert (given["exclude_nodes"], given["resume_from"], given["changes"]) == (["gpu018"], None, {})
    assert given["expires_at"] == (NOW + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    assert given["reasons"]
    assert given["labels"]["faultline/request"] == given["request_id"]
    assert given["request_id"].isalnum()
    assert given["request_id"].islower()
    assert lease(hook) == []
    assert lease(hook, cluster="vega") == []


def test_a_lease_names_the_token_and_not_only_what_the_hook_calls_itself(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID))
    with acting.client(acting.token("act", "read", name="orion-hook")) as other:
        [given] = lease(other, hook="an administrator")
        [request] = other.get(f"{API}/resubmissions", params={"state": "leased"}).json()["items"]
    assert request["request_id"] == given["request_id"]
    assert request["leased_by"] == "an administrator (orion-hook)"


def test_who_sees_one_team_takes_no_requests_of_others(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID))  # of the team vision
    whole = acting.token("act", "read", name="hook")
    limited = acting.client()
    with acting.store.unit_of_work() as work:
        account = work.accounts.create("olga", "operator", teams=["speech"])
        limited.cookies.set(COOKIE, work.sessions.log_in(account_id=account.id, lasts=LIFETIME))
    asked = {"hook": "mine", "cluster": "orion", "max": 10, "seconds": 60}
    answer = limited.post(f"{API}/resubmissions:lease", json=asked, headers={"Origin": HERE})
    assert (answer.status_code, "gpu018" in answer.text) == (403, False)
    with acting.client(whole) as client:
        [given] = lease(client)
    others = (limited, acting.client(acting.token("act", name="of speech", teams=["speech"])))
    for client in others:
        for verb, output in (("ack", {"result": "done", "new_job_id": "2"}), ("fail", {"error": "no"})):
            body = {"lease_token": given["lease_token"], **output}
            address = f"{API}/resubmissions/{given['request_id']}:{verb}"
            assert client.post(address, json=body, headers={"Origin": HERE}).status_code == 403, verb


def test_an_answer_and_the_same_again(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    address = f"{API}/resubmissions/{given['request_id']}:ack"
    output = {"lease_token": given["lease_token"], "result": "done", "new_job_id": "2"}
    first, second = hook.post(address, json=output), hook.post(address, json=output)
    assert first.status_code == second.status_code == 200
    assert first.json() == second.json()
    assert (first.json()["state"], first.json()["new_job_id"]) == ("done", "2")
    other = hook.post(address, json=output | {"result": "refused"})
    assert other.status_code == 409
    assert other.json()["errors"][0]["field"] == "result"


def test_a_token_that_is_not_the_lease_s_is_refused(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    for verb, output in (("ack", {"result": "done"}), ("fail", {"error": "no"})):
        answer = hook.post(f"{API}/resubmissions/{given['request_id']}:{verb}", json={"lease_token": "x", **output})
        assert answer.status_code == 409
        assert answer.json()["errors"][0]["field"] == "lease_token"
    assert hook.get(f"{API}/resubmissions/{given['request_id']}").json()["state"] == "leased"
    assert hook.post(f"{API}/resubmissions/rnone:ack", json={"lease_token": "x", "result": "done"}).status_code == 404


def test_what_was_withdrawn_meanwhile_answers_409_and_what_was_done_is_noted(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    failure = hook.get(f"{API}/failures").json()["items"][0]["id"]
    never = hook.post(f"{API}/failures/{failure}:never", json={"comment": "I fix it"})
    assert [one["state"] for one in never.json()] == ["withdrawn"]
    answer = hook.post(
        f"{API}/resubmissions/{given['request_id']}:ack",
        json={"lease_token": given["lease_token"], "result": "done", "new_job_id": "9"},
    )
    assert answer.status_code == 409
    shown = hook.get(f"{API}/resubmissions/{given['request_id']}").json()
    assert (shown["state"], shown["result"], shown["new_job_id"]) == ("withdrawn", "done", "9")
    # A person withdrew it; the verdict was not retracted.
    page = " ".join(hook.get("/automation").text.split())
    assert "carried out after it was withdrawn" in page
    assert "retracted" not in page


def test_a_person_s_correction_withdraws_what_waits(hook: TestClient) -> None:
    tell(hook, job("1", XID), job("2", XID))
    [given] = lease(hook, max=1)
    hook.post(
        f"{API}/resubmissions/{given['request_id']}:ack", json={"lease_token": given["lease_token"], "result": "done"}
    )
    for failure in (one["id"] for one in hook.get(f"{API}/failures").json()["items"]):
        output = hook.post(
            f"{API}/failures/{failure}/feedback", json={"kind": "correct", "side": "user", "cause": "USER.1"}
        )
        assert output.status_code in {200, 201}, output.text
    states = {one["job_id"]: one for one in hook.get(f"{API}/resubmissions").json()["items"]}
    done, waiting = states[given["job_id"]], states["2" if given["job_id"] == "1" else "1"]
    assert (done["state"], done["retracted"]) == ("done", True)
    assert (waiting["state"], waiting["retracted"]) == ("withdrawn", True)
    assert lease(hook) == []


def test_a_failing_hook_is_given_it_again_after_the_time_it_named(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    output = {"lease_token": given["lease_token"], "error": "slurmctld: no answer", "retry_after_s": 30}
    answer = hook.post(f"{API}/resubmissions/{given['request_id']}:fail", json=output)
    assert (answer.json()["state"], answer.json()["detail"]) == ("waiting", "slurmctld: no answer")
    assert lease(hook) == []
    acting.clock.at += timedelta(seconds=30)
    assert lease(hook)[0]["lease_count"] == 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seconds": 0}, "seconds"),
        ({"seconds": 10_000}, "seconds"),
        ({"max": 0}, "max"),
        ({"max": "3"}, "max"),
        ({"hook": ""}, "hook"),
        ({"cluster": "a\0b"}, "cluster"),
        ({"clustre": "orion"}, "clustre"),
    ],
)
def test_a_wrong_lease_names_its_field(hook: TestClient, changes: dict[str, Any], field: str) -> None:
    asked = {"hook": "h", "cluster": "orion", "max": 1, "seconds": 60} | changes
    answer = hook.post(f"{API}/resubmissions:lease", json=asked)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


def test_stop_and_start(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    stopped = hook.post(f"{API}/automation:stop", json={"reason": "maintenance"}).json()
    assert (stopped["stopped"], stopped["reason"]) == (True, "maintenance")
    assert lease(hook) == []
    assert hook.get(f"{API}/automation").json()["switch"]["stopped"] is True
    assert hook.post(f"{API}/automation:start").json()["stopped"] is False
    assert len(lease(hook)) == 1


def test_the_list_pages_and_filters(hook: TestClient) -> None:
    tell(hook, *(job(str(n), XID) for n in range(5)))
    first = hook.get(f"{API}/resubmissions?limit=2").json()
    second = hook.get(f"{API}/resubmissions", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    last = hook.get(f"{API}/resubmissions", params={"limit": 2, "cursor": second["next_cursor"]}).json()
    seen = [one["job_id"] for page in (first, second, last) for one in page["items"]]
    assert sorted(seen) == ["0", "1", "2", "3", "4"]
    assert last["next_cursor"] is None
    assert hook.get(f"{API}/resubmissions?state=done").json()["items"] == []
    assert hook.get(f"{API}/resubmissions?state=nonsense").status_code == 422
    assert hook.get(f"{API}/resubmissions?cursor=x").status_code == 422


def test_incidents_opened_by_a_person(hook: TestClient) -> None:
    made = hook.post(f"{API}/incidents", json={"cluster": "orion", "kind": "file_system", "value": "/scratch"})
    assert made.status_code == 201
    number = made.json()["id"]
    again = hook.post(f"{API}/incidents", json={"cluster": "orion", "kind": "file_system", "value": "/scratch"})
    assert again.status_code == 409
    tell(hook, *(job(str(n), GONE.format(n=n), nodes=[f"n{n}", "m"]) for n in range(3)))
    shown = hook.get(f"{API}/incidents/{number}").json()
    assert (shown["incident"]["held"], len(shown["jobs"]), shown["notes"][0]["what"]) == (3, 3, "opened")
    assert hook.get(f"{API}/incidents?open=true").json()["items"][0]["id"] == number
    assert hook.get(f"{API}/incidents?open=false").json()["items"] == []
    closed = hook.post(f"{API}/incidents/{number}:close", json={"comment": "failed over"})
    assert closed.json()["state"] == "closed"
    assert hook.post(f"{API}/incidents/{number}:hold").status_code == 409
    assert hook.get(f"{API}/incidents/99").status_code == 404


def test_figures_have_their_interval(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    hook.post(
        f"{API}/resubmissions/{given['request_id']}:ack", json={"lease_token": given["lease_token"], "result": "done"}
    )
    acting.clock.at += timedelta(hours=3)
    tell(hook, job("1", at=acting.clock.at))
    [rate] = hook.get(f"{API}/automation").json()["rates"]
    assert (rate["helped"], rate["failed"], rate["rate"], rate["plan"]) == (1, 0, 1.0, "elsewhere")
    assert 0.1 < rate["low"] < rate["high"] <= 1.0
