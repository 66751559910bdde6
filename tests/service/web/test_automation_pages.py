"""The pages of automation: sentences first, buttons that say what they do, nothing that needs a script."""

import re
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.event import listen

from service.people import passwords
from service.web.pages import incidents
from service.web.sessions import FORM_COOKIE
from tests.service.automation.world import job
from tests.service.databases import engine_of
from tests.service.web.access.test_auth import form_token
from tests.service.web.api.test_automation_api import GONE, XID, acting, hook, lease, tell
from tests.service.web.world import HERE, NOW, World

__all__ = ["acting", "hook"]  # fixtures


def post(client: TestClient, path: str, **form: Any) -> str:
    """Send a form as a browser does, and follow it."""
    client.get("/automation")
    token = client.cookies[FORM_COOKIE]
    answer = client.post(path, data={"form_token": token, **form}, headers={"Origin": "http://127.0.0.1:8080"})
    assert answer.status_code == 303, answer.text[:400]
    return client.get(answer.headers["location"]).text


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_the_switch_is_on_every_page_and_stops_everything(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    for path in ("/", "/failures", "/incidents", "/automation"):
        assert 'action="/automation/stop"' in hook.get(path).text
    page = post(hook, "/automation/stop", reason="storage work")
    assert "Automation is stopped: no job is resubmitted automatically." in page
    assert "storage work" in page
    assert lease(hook) == []
    page = post(hook, "/automation/start")
    assert "Automation is on: 1 waiting" in words(page)
    assert '<a href="/automation?state=waiting#requests">1</a> waiting' in page


def test_a_failure_s_page_says_what_automation_does_and_a_person_may_change_it(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [failure] = [one["id"] for one in hook.get("/api/v1/failures").json()["items"]]
    page = words(hook.get(f"/failures/{failure}").text)
    assert "Automation: resubmit without gpu018 – waiting" in page
    page = post(hook, f"/failures/{failure}/hold", comment="I look at it")
    assert "held by a person" in words(page)
    page = post(hook, f"/failures/{failure}/resubmit")
    assert "Requested. The next hook takes it." in page
    [given] = lease(hook)
    page = hook.get(f"/failures/{failure}").text
    assert "leased to a hook" in page
    assert f"/failures/{failure}/hold" not in page
    hook.post(
        f"/api/v1/resubmissions/{given['request_id']}:ack",
        json={"lease_token": given["lease_token"], "result": "done", "new_job_id": "2"},
    )
    assert "resubmitted as job 2" in words(hook.get(f"/failures/{failure}").text)


def test_shadow_mode_is_named(client: TestClient) -> None:
    tell(client, job("1", "NVRM: Xid 79"))
    [failure] = [one["id"] for one in client.get("/api/v1/failures").json()["items"]]
    assert "Shadow mode: would resubmit without" in words(client.get(f"/failures/{failure}").text)
    page = words(client.get(f"/failures/{failure}").text)
    assert "Not resubmitted: not opted in ." in page
    assert "the owner submits jobs with the label faultline/resubmit=auto" in page
    assert "shadow mode" in client.get("/automation?state=shadow").text


def test_figures_and_requests_are_those_of_the_period_and_open_requests_of_any_time(
    acting: World, hook: TestClient
) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    answer = {"lease_token": given["lease_token"], "result": "done", "new_job_id": "2"}
    hook.post(f"/api/v1/resubmissions/{given['request_id']}:ack", json=answer)
    acting.clock.at += timedelta(hours=30)
    tell(hook, job("3", XID, nodes=["gpu7"], user="bo", ended_at=(acting.clock.at - timedelta(minutes=1)).isoformat()))
    last_day = hook.get("/automation?since=24h").text
    assert "Last 24 h" in words(last_day)
    assert "Advised 1 100" in words(last_day)
    assert "orion / 3" in last_day
    assert "orion / 1" not in last_day
    day_before = hook.get("/automation?since=36h&until=20h").text
    assert "Resubmitted 1 100" in words(day_before)
    assert "orion / 1" in day_before
    assert "orion / 3" not in day_before
    assert "orion / 3" in hook.get("/automation?since=36h&until=20h&state=waiting").text, "it waits now"
    assert "/automation?since=24h" in hook.get("/?since=24h").text, "the navigation keeps the period"
    assert "No resubmission was advised in this period." in hook.get("/automation?since=20h&until=10h").text
    wrong = hook.get("/automation?since=soon")
    assert wrong.status_code == 422
    assert "expected a time" in words(wrong.text)


def test_an_incident_s_page_shows_its_jobs_and_lets_them_go(acting: World, hook: TestClient) -> None:
    tell(hook, *(job(str(n), GONE.format(n=n), nodes=[f"n{n}", "m"], user=f"u{n}") for n in range(6)))
    page = words(hook.get("/incidents").text)
    assert "1 incident is open." in page
    assert "Jobs fail on file system /scratch" in page
    page = words(hook.get("/incidents/1").text)
    assert "Stale file handle: &#39;/scratch/u3/ckpt.pt&#39;" in page
    assert "11-20 11:59 " in page.partition("Failed attempts")[2], "attempts within an hour are told apart"
    assert "orion / 3 u3, n3" in page
    assert "6 jobs of 6 users" in page
    assert "6 resubmissions are held" in page
    assert "Held by a person" in post(hook, "/incidents/1/hold", comment="team storage")
    assert "team storage" in post(hook, "/incidents/1/release")
    assert "2026-11-20 12:00 UTC to now, 0 s so far" in page
    assert "6 failed attempts of 6 jobs, 96 GPU-hours lost." in page
    acting.clock.at += timedelta(minutes=95)
    assert "Closed by" in post(hook, "/incidents/1/close", comment="failed over")
    for period, seen in (("", 1), ("?since=1h", 1), ("?since=2026-11-01&until=2026-11-19", 0)):
        assert hook.get(f"/incidents{period}").text.partition("<h2>Closed")[2].count('href="/incidents/1"') == seen
        assert len(hook.get(f"/api/v1/incidents{period}").json()["items"]) == seen
    closed = hook.get("/incidents/1").text
    assert "2026-11-20 12:00 to 2026-11-20 13:35 UTC, 1 h 35 min." in words(closed)
    assert "so far" not in words(closed)
    [around] = re.findall(r'href="(/\?since=[^"]+cluster=orion)"', closed)
    around = hook.get(around.replace("&amp;", "&")).text
    assert "6 of 6 job attempts failed" in words(around)
    page = words(hook.get("/incidents/1").text)
    assert "No resubmission is held." in page
    assert len(re.findall(r"2026-11-20 1[23]:\d\d:00 UTC", page)) >= 4, "entries of the history have absolute times"
    acting.clock.at += timedelta(minutes=10)
    leased = lease(hook)
    assert len(leased) == 6
    answer = {"lease_token": leased[0]["lease_token"], "result": "done"}
    hook.post(f"/api/v1/resubmissions/{leased[0]['request_id']}:ack", json=answer)
    for address in ("/incidents/1", "/automation"):
        assert words(hook.get(address).text).count("no result yet") == 1, address
    page = post(hook, "/incidents/open", cluster="orion", kind="rack", value="r7")
    assert "Jobs fail in rack r7" in page
    assert "Other incidents" not in page
    page = post(hook, "/incidents/open", cluster="orion", kind="file_system", value="/scratch")
    assert "Other incidents over the same file system: I-1 , 2026-11-20 12:00 to 2026-11-20 13:35, 6 jobs" in words(
        page
    )


def test_the_advice_on_a_job_of_an_incident_does_not_wait_for_what_is_over(hook: TestClient) -> None:
    """Its verdict stays as it was: the job may not be opted in, and then nobody resubmits it."""
    tell(hook, *(job(str(n), GONE.format(n=n), nodes=[f"n{n}", "m"], user=f"u{n}") for n in range(6)))
    [row] = [row for row in hook.get("/api/v1/failures").json()["items"] if row["job_id"] == "3"]

    def advice() -> str:
        return re.sub(r"\s+([.,])", r"\1", words(hook.get(f"/failures/{row['id']}").text))

    assert "Hold until the incident is closed. The service may also recover without a repair." in advice()
    post(hook, "/incidents/1/close", comment="failed over")
    assert "The incident is over. Resubmit now." in advice()
    assert "Hold until" not in advice()


def test_jobs_in_the_history_of_an_incident_are_links(hook: TestClient) -> None:
    tell(hook, *(job(str(n), GONE.format(n=n), nodes=[f"n{n}", "m"], user=f"u{n}") for n in range(6)))
    failures = {row["job_id"]: row["id"] for row in hook.get("/api/v1/failures").json()["items"]}
    post(hook, "/incidents/1/hold", comment="after job 99 and <b>job 2</b>: see job 3")
    post(hook, "/incidents/1/release")
    [probe] = lease(hook)
    number = probe["job_id"]
    history = hook.get("/incidents/1").text.partition("<h2>History</h2>")[2].partition("</section>")[0]
    assert f'job <a href="/failures/{failures[number]}">{number}</a> is released as the probe' in history
    assert f'after job 99 and &lt;b&gt;job 2&lt;/b&gt;: see job <a href="/failures/{failures["3"]}">3</a>' in history


def test_an_incident_s_page_says_how_many_attempts_it_does_not_list(
    hook: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incidents, "JOBS_SHOWN", 4)
    tell(hook, *(job(str(n), GONE.format(n=n), nodes=[f"n{n}", "m"], user=f"u{n}") for n in range(6)))
    page = hook.get("/incidents/1").text
    assert page.count('href="/failures/') == 4
    assert "The latest 4 are listed, and there are 2 more." in words(page)


@pytest.mark.parametrize("path", ["/automation?cursor=x", "/incidents?cursor=x"])
def test_an_invalid_cursor_is_reported(hook: TestClient, path: str) -> None:
    assert hook.get(path).status_code == 422


def test_hostile_names_are_shown_and_do_nothing(hook: TestClient) -> None:
    name = "<script>alert(1)</script>"
    tell(hook, job("1", XID, user=name, nodes=[name, "gpu2"]))
    page = hook.get("/automation").text
    assert name not in page
    assert "&lt;script&gt;" in page


def test_the_funnel_counts_each_stage_and_what_shadow_mode_left_undone(hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    hook.post(
        f"/api/v1/resubmissions/{given['request_id']}:ack",
        json={"lease_token": given["lease_token"], "result": "done", "new_job_id": "2"},
    )
    funnel = words(hook.get("/automation").text.partition('<section class="funnel">')[2].partition("</section>")[0])
    for stage in ("Advised 1 100", "Opted in 1 100", "Sent to a hook 1 100", "Resubmitted 1 100", "Helped 0 0"):
        assert stage in funnel
    assert "would have been requested" not in funnel
    assert "failed again" not in hook.get("/").text, "nothing is known yet"


def test_the_overview_says_how_resubmitted_jobs_ended(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID))
    [given] = lease(hook)
    answer = {"lease_token": given["lease_token"], "result": "done"}
    hook.post(f"/api/v1/resubmissions/{given['request_id']}:ack", json=answer)
    acting.clock.at += timedelta(hours=3)
    tell(hook, job("1", at=acting.clock.at))
    assert "outcome in 7 days 1 helped, 0 failed again" in words(hook.get("/").text)


def test_shadow_mode_shows_what_it_would_have_requested(client: TestClient) -> None:
    tell(client, job("1", "NVRM: Xid 79"))
    page = words(client.get("/automation").text)
    assert "No request was carried out." in page
    assert "Shadow mode: 1 more resubmission would have been requested" in page
    assert "For it, no success rate is known yet." in page
    assert "faultline/resubmit=auto" in page, "it says how to switch more of it on"


def test_shadow_mode_counts_the_hours_before_the_checkpoint_that_it_could_rescue(
    world: World, client: TestClient
) -> None:
    saved = {"uri": "/scratch/step100.pt", "step": 100, "at": (NOW - timedelta(minutes=61)).isoformat()}
    tell(client, job("1", "NVRM: Xid 79", gpus=8, checkpoint=saved), job("2", "NVRM: Xid 79", gpus=8, user="bo"))
    asked: list[str] = []
    listen(engine_of(world.store), "before_cursor_execute", lambda *given: asked.append(given[2]))
    with world.store.reading() as reading:
        [row] = reading.funnel.read(world.clock.at - timedelta(days=28)).shadow
    assert sum("EXISTS" in one for one in asked) == 1, "which jobs ran again by themselves is asked once"
    assert row.requests == 2
    assert row.rescuable == pytest.approx(8.0), "one hour of 8 GPUs before the checkpoint; nothing without a checkpoint"


def test_an_owner_sees_that_the_job_will_be_resubmitted_and_stops_it(acting: World, hook: TestClient) -> None:
    tell(hook, job("1", XID), job("2", XID, user="bo"))
    numbers = {row["job_id"]: row["id"] for row in hook.get("/api/v1/failures").json()["items"]}
    mine, other = f"/failures/{numbers['1']}", f"/failures/{numbers['2']}"
    with acting.store.unit_of_work() as work:
        hashed = passwords.hash_password("correct horse battery")
        work.accounts.create("ana of vision", "owner", password=hashed, users=("orion/ana",), teams=("vision",))
    with acting.client() as owner, acting.client(acting.token("act", "read")) as operator:
        form = {"name": "ana of vision", "password": "correct horse battery", "form_token": form_token(owner)}
        assert owner.post("/login", data=form).status_code == 303
        page = owner.get(mine).text
        assert "waiting" in words(page)
        assert "Never resubmit my job automatically" in page
        assert "Never resubmit" not in owner.get(other).text, "a job of the team is not the owner's"
        assert owner.post(f"{other}/never", data={"form_token": form["form_token"]}).status_code == 403
        assert owner.post(f"/api/v1{other}:never", headers={"Origin": HERE}).status_code == 403
        assert owner.post(f"/api/v1{mine}:hold", headers={"Origin": HERE}).status_code == 403, "operators only"
        decided = owner.post(f"/api/v1{mine}:never", headers={"Origin": HERE}, json={"comment": "I repair it"})
        assert decided.status_code == 200, decided.text
        assert "Never resubmitted automatically, as decided by ana of vision." in words(owner.get(mine).text)
        assert owner.post(f"/api/v1{other}:lift", headers={"Origin": HERE}).status_code == 403
        lifted = owner.post(f"/api/v1{mine}:lift", headers={"Origin": HERE})
        assert lifted.status_code == 200, lifted.text
        assert "as decided by" not in words(owner.get(mine).text)
        page = post(owner, f"{mine}/never")
        assert "Never resubmitted automatically, as decided by ana of vision." in words(page)
        assert [one["job_id"] for one in lease(operator)] == ["2"], "the hook does not get the request of job 1"
        assert "Allow again" in page
        assert "as decided by" not in words(post(owner, f"{mine}/lift"))
        held = operator.post(f"/api/v1/failures/{numbers['1']}:hold", json={"comment": "under repair"})
        assert held.status_code == 200
        refused = owner.post(f"/api/v1{mine}:never", headers={"Origin": HERE})
        assert refused.status_code == 403, "the operator's decision stands"
        assert owner.post(f"/api/v1{mine}:lift", headers={"Origin": HERE}).status_code == 403
        for what in ("lift", "never"):
            refused = owner.post(f"{mine}/{what}", data={"form_token": form["form_token"]})
            assert refused.status_code == 403
            assert "only an operator can change that" in refused.text
        assert "Held by " in words(owner.get(mine).text)
        assert operator.post(f"/api/v1/failures/{numbers['1']}:lift").status_code == 200
        assert "Held by " not in words(owner.get(mine).text)


def test_a_job_that_is_not_resubmitted_again_is_not_said_to_run_at_once(hook: TestClient) -> None:
    ends = [(NOW - timedelta(minutes=40 - 10 * attempt)).isoformat() for attempt in range(3)]
    again = [job("1", XID, attempt=at, ended_at=end) for at, end in enumerate(ends)]
    tell(hook, *again)
    failure_id = hook.get("/api/v1/failures").json()["items"][0]["id"]
    advice, _, rest = hook.get(f"/failures/{failure_id}").text.partition("<h2>Evidence</h2>")
    assert "failed 3 times in a row in the same way" in advice
    assert "can run at once" not in advice
    assert "can run at once" in rest, "all evaluated rules are listed below"
    assert "Check first whether the fault is still there" in advice
    assert "service" not in words(advice.partition('class="answer"')[2]), "a GPU is none"
