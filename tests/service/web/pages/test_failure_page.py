"""The page of one failure: links, advice and timeline agree with the failure."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from classifiers.contracts import ChainStep, JobFacts
from service.feedback.corrected_verdict import corrected
from service.feedback.records import Labels
from service.recommend.wording import MitigationWording
from service.web.pages.failure.feature_words import reasons
from tests.service.web.world import BY_WORD, GUESS, HARDWARE, NOW, PANIC, event, lines, log

EMPTY = dict.fromkeys(
    ("batch", "checkpoint", "memory", "memory_now", "reached", "time_limit", "time_limit_now", "user"), ""
)
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."


def page_of(client: TestClient, *events: dict[str, object]) -> str:
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    failure_id = client.get("/api/v1/failures").json()["items"][0]["id"]
    return client.get(f"/failures/{failure_id}").text


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_the_link_to_the_first_line_is_there_only_if_the_page_shows_that_line(client: TestClient) -> None:
    shown = page_of(client, event("1", logs=[log(f"fine\n{XID}", 1)]))
    assert 'href="#first"' in shown
    assert 'id="first"' in shown
    text = page_of(client, event("2", logs=[], ended_at=(NOW - timedelta(minutes=1)).isoformat()))
    assert 'href="#first"' not in text


def test_the_advice_leaves_when_a_person_holds_the_job(client: TestClient) -> None:
    shown = page_of(client, event("1", logs=[log(f"fine\n{XID}", 1)]))
    assert '<div class="do">' in shown
    failure_id = client.get("/api/v1/failures").json()["items"][0]["id"]
    token = re.search(r'name="form_token" value="([^"]+)"', shown)
    assert token is not None
    held = client.post(
        f"/failures/{failure_id}/hold", data={"form_token": token[1]}, headers={"Origin": "http://127.0.0.1:8080"}
    )
    assert held.status_code == 303, held.text
    after = client.get(f"/failures/{failure_id}").text
    assert '<div class="do">' not in after
    assert "Held by this machine." in words(after)
    mitigations = after.partition("<h2>Possible mitigations</h2>")[2].partition("</section>")[0]
    assert "Resubmit without" not in words(mitigations)
    assert "exclude nodes" not in mitigations


def times(logs: str, **changes: object) -> dict[str, object]:
    began, ended = NOW - timedelta(hours=3), NOW - timedelta(minutes=30)
    return event("1", started_at=began.isoformat(), ended_at=ended.isoformat(), logs=[log(logs, 1)], **changes)


def test_the_time_line_ends_with_the_job(client: TestClient) -> None:
    after = (NOW - timedelta(minutes=25)).isoformat()[:19]
    shown = page_of(client, times(f"2026-11-20T11:29:00 {XID}\n{after} srun: cleaning up"))
    axis = shown.partition('class="axis of-timeline"')[2].partition("</p>")[0]
    assert "2026-11-20 11:30:00 UTC" in axis
    assert "11:35" not in axis


def test_the_time_line_leaves_out_lines_of_another_year(client: TestClient) -> None:
    shown = page_of(client, times(f"2024-03-17T20:58:16 {XID}\n2024-03-17T20:58:17 srun: done"))
    table = shown.partition("<h2>Timeline</h2>")[2].partition("</section>")[0]
    assert "Xid" not in table
    assert "started" in table


def test_the_time_line_tells_nodes_apart_whose_names_differ_at_the_end_only(client: TestClient) -> None:
    nodes = ["gke-training-a3-highgpu-8g-x7f2", "gke-training-a3-highgpu-8g-q1zz"]
    at = (NOW - timedelta(minutes=31)).isoformat()
    reports = [{"at": at, "node": node, "source": "kernel", "text": "NVRM: Xid 79"} for node in nodes]
    shown = page_of(client, event("1", nodes=nodes, node_events=reports))
    chart = shown.partition("<h2>Timeline</h2>")[2].partition("</section>")[0]
    lanes = re.findall(r'text-anchor="end">([^<]+)</text>', chart)
    assert [lane[-4:] for lane in lanes if lane.startswith("node ")] == ["x7f2", "q1zz"]
    assert max(map(len, lanes)) <= 20
    for node in nodes:
        assert f"<td>node {node}</td>" in chart


def test_the_message_to_the_owner_is_as_sure_as_the_page(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_WORD, "ModuleNotFoundError", replace(GUESS, confidence=0.998))
    shown = words(page_of(client, event("1")))
    assert "over 99 % sure. Contest it if it is wrong" in shown
    assert "100 %" not in shown


def test_a_correction_to_another_side_takes_the_node_and_the_reasons_of_the_model_along() -> None:
    labels = Labels("user", "USER.1", None, None, "futile")
    made = corrected(HARDWARE, labels, JobFacts(status="failed"))
    assert (made.side, made.suspect, made.weighed) == ("user", None, ())
    same = corrected(HARDWARE, Labels("hardware", "HW.GPU.1", None, None, None), JobFacts(status="failed"))
    assert (same.suspect, same.weighed) == (HARDWARE.suspect, HARDWARE.weighed)


def test_advice_on_a_failure_of_the_user_points_at_the_own_code() -> None:
    verdict = replace(GUESS, own_frame="pretrain.py:10")
    assert MitigationWording(verdict, (), EMPTY).mitigation("M2").endswith("Look first at: pretrain.py:10")
    elsewhere = replace(HARDWARE, own_frame="pretrain.py:10")
    assert "pretrain.py" not in MitigationWording(elsewhere, ("gpu018",), EMPTY).mitigation("M2")


def test_the_own_code_is_quoted_beside_its_place(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_WORD, "IndexError", replace(GUESS, own_frame="train.py:97"))
    text = (
        'Traceback (most recent call last):\n  File "/x/train.py", line 97, in step\n    loss = f(x)\nIndexError: boom'
    )
    sure = page_of(client, event("1", logs=[log(text)])).partition('class="sure"')[2].partition("</p>")[0]
    assert "In the job's own code: <code>train.py:97</code>, <code>loss = f(x)</code>." in sure


def test_the_page_tells_how_the_failure_went(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = (
        ChainStep("beginning", "IndexError: list index out of range", rank=21, lines=1),
        ChainStep("consequence", "x", title="A gloo peer closed the connection", ranks=31, after_s=4.0),
        ChainStep("end", "failed, exit code 1"),
        ChainStep("set_aside", "NVRM: Xid 79", title="it is of a node that the job did not use", node="gpu77", lines=2),
    )
    monkeypatch.setitem(BY_WORD, "user", replace(GUESS, chain=chain))
    page = words(page_of(client, event("1", logs=[log("user")])))
    assert "A gloo peer closed the connection (31 other ranks, 4 s later)" in page
    assert "Explains nothing here: it is of a node that the job did not use (gpu77, 2 such lines) NVRM: Xid 79" in page
    monkeypatch.setitem(BY_WORD, "user", replace(GUESS, chain=(chain[0], chain[2])))
    later = (NOW - timedelta(seconds=5)).isoformat()
    assert "Sequence of events" not in words(page_of(client, event("2", logs=[log("user")], ended_at=later)))


@pytest.mark.parametrize("word", ["Xid 79", "ModuleNotFoundError", "SomethingError"])
def test_a_page_that_shows_a_node_event_first_says_so_everywhere(client: TestClient, word: str) -> None:
    panic = {"at": NOW.isoformat(), "node": "gpu018", "source": "kernel", "text": f"{PANIC} - not syncing"}
    logs = [log(f"step 1\n{word}: x", 0), log("RuntimeError: peer lost", 1)]
    html = page_of(client, event("1", logs=logs, node_events=[panic]))
    page, of_user = words(html), word.startswith("Module")
    evidence = words(html.partition("<h2>Evidence</h2>")[2].partition("</section>")[0])
    assert evidence.split()[:6] == ["gpu018", "node", "event", "●", "initiating", PANIC.split()[0]]
    assert ("First: a node event of gpu018." if word == "Xid 79" else "First: a node event.") in evidence
    assert "First: rank" not in page
    assert "Which line came first? No line of a log: a node event of gpu018 came first." in page
    assert "failed first" not in page
    assert ("It began with this event of node gpu018: Kernel panic" in page) is of_user
    assert ("Look at the node event that is first in the evidence:" in page) is word.startswith("Something")


def test_no_node_is_suspected_of_a_failure_of_the_user(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    suspect = replace(HARDWARE.suspect, node="gpu019", gpu=None, rank=1) if HARDWARE.suspect else None
    nodes = {"nodes": ["gpu018", "gpu019"]}
    for verdict in (GUESS, HARDWARE):
        monkeypatch.setitem(BY_WORD, verdict.side, replace(verdict, suspect=suspect, retry_outlook="helps_elsewhere"))
    of_user = words(page_of(client, event("1", logs=[log("user")], **nodes)))
    assert "Began at rank 1." in of_user
    assert "suspected gpu019" not in of_user
    assert "on node gpu019" not in of_user
    assert "First: rank 0." in of_user
    told = replace(GUESS, suspect=replace(suspect, rank=0, node=None) if suspect else None)
    monkeypatch.setitem(BY_WORD, "user", told)
    once = event("4", logs=[log("user")], ended_at=(NOW - timedelta(minutes=3)).isoformat(), **nodes)
    assert "Began at rank 0." in (page := words(page_of(client, once)))
    assert "First: rank 0." not in page, "it is said once"
    assert "gpu018 +1" in words(client.get("/failures").text)
    alone = event("3", logs=[log("user")], nodes=["gpu018"], ended_at=(NOW - timedelta(minutes=2)).isoformat())
    assert "on node" not in words(page_of(client, alone))
    later = (NOW - timedelta(minutes=1)).isoformat()
    of_node = words(page_of(client, event("2", logs=[log("hardware")], ended_at=later, **nodes)))
    assert "Began at node gpu019, rank 1." in of_node
    assert "suspected gpu019" in of_node
    assert "on node gpu019" in of_node
    assert "First: rank 0 on gpu018." in of_node
    items = client.get("/api/v1/failures").json()["items"]
    advice = {row["side"]: client.get(f"/api/v1/failures/{row['id']}").json()["verdict"] for row in items}
    assert (advice["user"]["exclude_nodes"], advice["user"]["resubmit"]) == ([], False)
    assert advice["hardware"]["exclude_nodes"] == ["gpu019"]


def test_a_job_id_that_is_used_again_is_another_job(client: TestClient) -> None:
    """Neither its attempts nor a later success of it belong to the failed job."""
    began = NOW - timedelta(days=24)
    old = {"started_at": (began - timedelta(hours=1)).isoformat(), "ended_at": began.isoformat()}
    again = {"started_at": began.isoformat(), "ended_at": (began + timedelta(hours=1)).isoformat()}
    events = [
        event("900240", **old),
        event("900240", attempt=None, user="hugo", name="other", status="succeeded", logs=[], nodes=["gpu033"]),
        event("900241", **old),
        event("900241", attempt=1, status="succeeded", logs=[], **again),
    ]
    assert client.post("/api/v1/events", content=lines(*events)).json()["accepted"] == len(events)
    found = {row["job_id"]: row["id"] for row in client.get("/api/v1/failures").json()["items"]}
    reused = client.get(f"/failures/{found['900240']}").text
    attempts = reused.partition("<h2>This job</h2>")[2].partition("</table>")[0]
    assert "gpu033" not in attempts
    assert attempts.count("<tr") == 2
    assert "900241" in reused.partition("Nearest resolved failure")[2][:400]
    retried = client.get(f"/failures/{found['900241']}").text
    assert retried.partition("<h2>This job</h2>")[2].partition("</table>")[0].count("<tr") == 3
    assert "No similar failure is known whose job succeeded afterwards" in retried


def test_what_resolved_a_similar_failure_stands_in_the_advice_where_a_person_decides(client: TestClient) -> None:
    odd = [log("SomethingError: nobody has seen this before")]
    began = NOW - timedelta(days=2)
    old = {"started_at": (began - timedelta(hours=1)).isoformat(), "ended_at": began.isoformat(), "nodes": ["gpu019"]}
    again = {"started_at": began.isoformat(), "ended_at": (began + timedelta(hours=1)).isoformat()}
    solved = event("8", attempt=1, status="succeeded", logs=[], nodes=["gpu020"], **again)
    page = page_of(client, event("8", logs=odd, **old), solved, event("9", logs=odd))
    advice = words(page.partition('<div class="do">')[2].partition("</section>")[0])
    assert "A similar failure was resolved: orion / 8 , 2 d ago ; the same job succeeded" in advice
    assert "on other nodes, without gpu019" in advice
    assert "orion / 8" not in words(page.partition("<h2>Related</h2>")[2].partition('<div class="columns">')[0])
    assert '<span class="side unknown">unknown</span> <span><a href' in page.partition("<h2>Related</h2>")[2]


def test_ranks_are_named_in_the_right_number_and_no_symptom_is_called_others(client: TestClient) -> None:
    cascade = [log("ncclRemoteError Error", rank) for rank in (0, 2)]
    shown = words(page_of(client, event("1", logs=[log(XID, 1), *cascade])))
    assert "First: rank 1 on gpu018. Affected by it: ranks 0, 2." in shown
    BY_WORD["OtherError"] = replace(GUESS, symptom="D.1.11")
    try:
        other = page_of(client, event("2", logs=[log("OtherError: x")], ended_at=NOW.isoformat()))
    finally:
        del BY_WORD["OtherError"]
    assert "Symptom:" not in words(other.partition('class="sure"')[2].partition("</p>")[0])


def test_the_reasons_of_a_verdict_are_given_in_words() -> None:
    weighed = (
        ("x:KeyError", 3.5),
        ("w:import", 0.48),
        ("sc:USER.1", 1.2),
        ("i:bus", -0.4),
        ("bias", 2.0),
        ("odd", 1.0),
    )
    assert reasons(weighed) == [
        ("the exception KeyError", "very strong"),
        ("“import” in the evidence", "weak"),
        ("signatures that name Buggy Code", "strong"),
        ("odd", "strong"),
    ]


def test_the_count_of_a_suspected_node_opens_the_failures_that_it_counts(client: TestClient) -> None:
    minutes = [{"ended_at": (NOW - timedelta(minutes=ago)).isoformat(), "nodes": ["gpu018"]} for ago in (1, 2, 3)]
    of_user = log("ModuleNotFoundError: No module named 'flash_attn'")
    given = [event(str(number), logs=[log(XID, 1)], **at) for number, at in enumerate(minutes[:2])]
    given.append(event("9", logs=[of_user], **minutes[2]))
    assert client.post("/api/v1/events", content=lines(*given)).json()["accepted"] == len(given)
    shown = client.get("/failures").text
    link = re.search(r'href="(/failures\?suspect=gpu018)">gpu018</a> <span class="n">(\d)</span>', shown)
    assert link is not None
    assert link[2] == "2"
    assert "suspected node gpu018 ×" in words(client.get(link[1]).text)
    rows = client.get(f"/api/v1{link[1]}").json()["items"]
    assert [row["side"] for row in rows] == ["hardware", "hardware"]
    assert len(client.get("/api/v1/failures?node=gpu018").json()["items"]) == len(given)


def test_evidence_and_lines_of_the_excerpt_open_the_log_at_their_line(client: TestClient) -> None:
    shown = page_of(client, event("1", logs=[log(f"fine\n{XID}", 1), log("fine", 2)]))
    evidence = shown.partition('<table class="evidence">')[2].partition("</table>")[0]
    [address] = re.findall(r'<td class="where"><a href="([^"]+)"', evidence)
    assert address.endswith("/lines?line=2#L2")
    assert f'<td class="no"><a href="{address}"' in shown
    viewer = client.get(address.partition("#")[0]).text
    assert '<tr id="L2" class="initiating"' in viewer
    assert '<strong data-copy="address">line 2</strong>' in viewer


def test_a_failure_leads_to_the_newer_and_the_older_one_of_its_cluster(client: TestClient) -> None:
    def at(hour: int) -> str:
        return (NOW - timedelta(hours=hour)).isoformat()

    began = (NOW - timedelta(hours=9)).isoformat()
    jobs = [event(str(hour), started_at=began, ended_at=at(hour)) for hour in (1, 2, 3)]
    elsewhere = event("far", cluster="far", started_at=began, ended_at=(NOW - timedelta(minutes=90)).isoformat())
    client.post("/api/v1/events", content=lines(*jobs, elsewhere))
    ids = {row["job_id"]: row["id"] for row in client.get("/api/v1/failures").json()["items"]}

    def neighbours(job: str) -> list[tuple[str, str]]:
        page = client.get(f"/failures/{ids[job]}").text
        assert '<a href="/failures">Failures</a> /' in page
        return re.findall(r'<a rel="(prev|next)" href="/failures/(\d+)"', page)

    assert neighbours("2") == [("prev", str(ids["1"])), ("next", str(ids["3"]))]
    assert neighbours("1") == [("next", str(ids["2"]))], "nothing is newer on this cluster"
    assert neighbours("3") == [("prev", str(ids["2"]))]
    assert neighbours("far") == []


def test_the_newer_and_the_older_failure_follow_the_list_that_led_to_a_failure(client: TestClient) -> None:
    def made(job: str, minutes: int, user: str, cluster: str = "orion") -> dict[str, object]:
        ended = (NOW - timedelta(minutes=minutes)).isoformat()
        return event(job, user=user, cluster=cluster, started_at=ended, ended_at=ended)

    jobs = [made("1", 10, "ana"), made("2", 20, "bo"), made("3", 30, "ana"), made("4", 40, "ana", cluster="far")]
    client.post("/api/v1/events", content=lines(*jobs))
    ids = {row["job_id"]: row["id"] for row in client.get("/api/v1/failures").json()["items"]}

    def opened(path: str, job: str) -> str:
        [address] = re.findall(rf'<td class="what"><a href="(/failures/{ids[job]}[^"]*)"', client.get(path).text)
        return client.get(address.replace("&amp;", "&")).text

    def neighbours(page: str) -> dict[str, str]:
        found = re.findall(r'<a rel="(prev|next)" href="/failures/(\d+)[^"]*"', page)
        return {where: next(job for job in ids if ids[job] == int(number)) for where, number in found}

    page = opened("/failures?user=ana&since=24h", "3")
    assert neighbours(page) == {"prev": "1", "next": "4"}
    assert '<a class="muted" href="/failures?user=ana&amp;since=24h">filtered list</a>' in page
    assert f'<a rel="next" href="/failures/{ids["4"]}?user=ana&amp;since=24h"' in page
    page = opened("/failures", "3")
    assert neighbours(page) == {"prev": "2", "next": "4"}, "the list of all failures has those of all clusters"
    assert "filtered list" not in page
    assert neighbours(client.get(f"/failures/{ids['3']}?since=never").text) == {"prev": "2"}, "no time: its cluster"


def test_an_undecided_verdict_tells_a_person_what_to_look_at(client: TestClient) -> None:
    page = words(page_of(client, event("1", logs=[log("SomethingError: nobody has seen this before")])))
    assert "Needs a decision by a person. Look at the " in page
    assert "Nothing is done automatically." in page, "no policy is the reason"
    assert "Did other jobs fail on the same nodes at that time?" in page
    for text in re.findall(r"(?:[^.]*\. )?[^.]*Change the code[^.]*\.", page):
        assert "only if" in text, "what is not known to be the cause is not to be changed"


@pytest.mark.parametrize("code", ["M2", "M8"])
def test_what_the_evidence_does_not_decide_is_looked_at_before_it_is_changed(code: str) -> None:
    undecided = MitigationWording(replace(GUESS, abstained=True), ("gpu018",), EMPTY).mitigation(code)
    assert undecided.startswith("Look ")
    assert "only if" in undecided
    decided = MitigationWording(GUESS, ("gpu018",), EMPTY).mitigation(code)
    assert decided.startswith(("Change the code", "Take gpu018"))
    cancelled = MitigationWording(GUESS, ("gpu018",), EMPTY, cancelled=True).mitigation(code)
    assert not cancelled.startswith(("Change the code", "Take "))


def test_a_cancelled_job_is_no_reason_to_change_its_code(client: TestClient) -> None:
    own = [log("ModuleNotFoundError: No module named 'x'")]
    page = words(page_of(client, event("1", logs=own, status="cancelled")))
    assert "Not resubmitted. The job was cancelled, which says nothing about its code. Find out who" in page
    assert "Change the code" not in page
    assert "find out first who or what cancelled the job" in page


def test_a_job_of_slurm_has_a_command_without_the_suspected_node(client: TestClient) -> None:
    command = "sbatch --exclude=gpu018 your-script.sh"
    xid = [log(f"fine\n{XID}", 1)]
    assert command in page_of(client, event("1", logs=xid, scheduler="slurm"))
    later = (NOW - timedelta(minutes=1)).isoformat()
    assert command not in page_of(client, event("2", logs=xid, scheduler="kubernetes", ended_at=later))
    own = [log("ModuleNotFoundError: No module named 'x'")]
    last = NOW.isoformat()
    assert "sbatch" not in page_of(client, event("3", logs=own, scheduler="slurm", ended_at=last))


def test_the_share_of_a_mitigation_is_not_taken_for_the_chance_of_a_resubmission(client: TestClient) -> None:
    page = words(page_of(client, event("1", logs=[log(f"fine\n{XID}", 1)])))
    assert "It is not the chance that a resubmission succeeds; the advice states that." in page
    assert re.search(r"\d %.likely to help\.", page), "the advice states it"
    assert "Hold: the job is not resubmitted automatically until somebody requests it." in page


def test_the_advice_is_not_said_twice_and_each_reason_has_its_rule(client: TestClient) -> None:
    page = words(page_of(client, event("9", logs=[log("OSError: Stale file handle")])))
    assert page.partition("more reasons")[0].count("Resubmit after a pause.") == 1
    more = page.partition("more reasons")[2]
    assert "opt-in: " in more
    assert "retry-storm limit: " in more


def test_a_failure_of_several_logs_that_name_no_beginning_has_a_page(client: TestClient) -> None:
    shown = page_of(client, event("1", logs=[log("step 1", rank) for rank in range(3)]))
    assert shown.count('<details class="log">') == 3
