"""Groups, feedback, labels, exports and saved views by the API."""

import csv
import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient

from classifiers.data import labelled_cases
from tests.service.web.world import NOW, World, event, lines, log, make_world

MODULE = "ModuleNotFoundError: No module named 'flash_attn'"
XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus."


@pytest.fixture
def stocked(client: TestClient) -> TestClient:
    """Three missing modules, two lost GPUs, one that nobody understands; one was written by somebody up to no good."""
    made = [event(str(n), user=f"user{n // 2}", nodes=[f"m{n}"], logs=[log(MODULE, node=f"m{n}")]) for n in range(3)]
    made += [event(f"x{n}", gpus=64, nodes=[f"x{n}"], logs=[log(XID, 1, node=f"x{n}")]) for n in range(2)]
    odd = log("SomethingError: what is this password=hunter22", node="odd")
    made.append(event("odd", user="=HYPERLINK(1)", nodes=["odd"], logs=[odd]))
    assert client.post("/api/v1/events", content=lines(*made)).json()["accepted"] == 6
    return client


def groups(client: TestClient, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/groups{query}").json()["items"]
    return found


def act(client: TestClient, number: int, **asked: Any) -> Any:
    return client.post(f"/api/v1/groups/{number}/actions", json=asked)


def one(client: TestClient, words: str) -> dict[str, Any]:
    [found] = [group for group in groups(client) if words in group["title"]]
    return found


def test_failures_of_one_kind_are_a_group_with_what_it_cost(stocked: TestClient) -> None:
    modules = one(stocked, "flash_attn")
    assert (modules["failures"], modules["users"], modules["state"]) == (3, 2, "new")
    lost = one(stocked, "Xid")
    assert lost["gpu_hours_lost"] == pytest.approx(2 * 64 * 2.5)
    assert groups(stocked, "?sort=-gpu_hours_lost")[0]["id"] == lost["id"]
    listed = stocked.get(f"/api/v1/failures?group={modules['id']}").json()["items"]
    assert {row["job_id"] for row in listed} == {"0", "1", "2"}
    result = stocked.get(f"/api/v1/groups/{modules['id']}").json()
    assert "same first error line" in result["why_together"][0]
    assert {facet["name"] for facet in result["group"]["facets"] if facet["kind"] == "user"} == {
        "user0",
        "user1",
    }
    assert [group["id"] for group in groups(stocked, "?user=user1")] == [modules["id"]]
    assert [group["id"] for group in groups(stocked, "?novel=true")] == [one(stocked, "Something")["id"]]


def test_what_was_resolved_and_comes_back_is_regressed(stocked: TestClient, world: World) -> None:
    number = one(stocked, "Xid")["id"]
    assert act(stocked, number, action="resolve").json()["group"]["row"]["state"] == "resolved"
    world.clock.at += timedelta(hours=1)
    stocked.post("/api/v1/events", content=lines(event("again", logs=[log(XID)], ended_at=world.clock.at.isoformat())))
    assert one(stocked, "Xid")["state"] == "regressed"
    assert [group["id"] for group in groups(stocked, "?state=regressed")] == [number]
    assert act(stocked, number, action="reopen").json()["group"]["row"]["state"] == "ongoing"
    notes = [note["text"] for note in stocked.get(f"/api/v1/groups/{number}").json()["group"]["notes"]]
    assert notes == ["opened it again", "came back after it was resolved", "resolved it"]


@pytest.mark.parametrize("until", [{"failures": 2}, {"users": 1}, {"until": (NOW + timedelta(hours=2)).isoformat()}])
def test_a_mute_ends_when_its_condition_is_met(stocked: TestClient, world: World, until: dict[str, Any]) -> None:
    number = one(stocked, "flash_attn")["id"]
    assert act(stocked, number, action="mute", **until).json()["group"]["row"]["state"] == "muted"
    stocked.post("/api/v1/events", content=lines(event("more", user="user0")))
    assert one(stocked, "flash_attn")["state"] == "muted"
    world.clock.at += timedelta(hours=3)
    stocked.post("/api/v1/events", content=lines(event("last", user="somebody else")))
    assert one(stocked, "flash_attn")["state"] == "new"


def test_a_mute_for_me_hides_from_me_alone(stocked: TestClient) -> None:
    number = one(stocked, "Xid")["id"]
    assert act(stocked, number, action="mute", for_me=True).json()["group"]["muted_for_me"]
    assert number not in {group["id"] for group in groups(stocked, "?mine=true")}
    assert number in {group["id"] for group in groups(stocked)}
    act(stocked, number, action="unmute_for_me")
    assert number in {group["id"] for group in groups(stocked, "?mine=true")}


def test_merged_groups_are_one_and_later_failures_follow_until_it_is_undone(stocked: TestClient) -> None:
    modules, odd = one(stocked, "flash_attn")["id"], one(stocked, "Something")["id"]
    result = act(stocked, modules, action="merge", groups=[odd]).json()["group"]
    assert (result["row"]["failures"], len(result["prints"])) == (4, 2)
    assert odd not in {group["id"] for group in groups(stocked)}
    stocked.post("/api/v1/events", content=lines(event("odd2", logs=[log("SomethingError: what is this")])))
    listed = stocked.get(f"/api/v1/failures?group={modules}&limit=3").json()
    rest = stocked.get(f"/api/v1/failures?group={modules}&limit=3&cursor={listed['next_cursor']}").json()
    assert len({row["job_id"] for row in listed["items"] + rest["items"]}) == 5
    assert act(stocked, odd, action="resolve").status_code == 409
    [print_] = [one["fingerprint"] for one in result["prints"] if one["own_group"] == odd]
    assert act(stocked, modules, action="take_out", fingerprint=print_).json()["group"]["row"]["failures"] == 3
    assert one(stocked, "Something")["failures"] == 2


def test_what_is_split_off_stays_apart_and_later_failures_follow(stocked: TestClient) -> None:
    number = one(stocked, "flash_attn")["id"]
    assert act(stocked, number, action="split", field="user", value="user1").status_code == 200
    stocked.post("/api/v1/events", content=lines(event("later", user="user1"), event("other", user="user2")))
    counts = {group["id"]: group["failures"] for group in groups(stocked) if "flash_attn" in group["title"]}
    assert counts.pop(number) == 3
    assert list(counts.values()) == [2]
    assert act(stocked, number, action="split", field="user", value="user1").status_code == 409
    assert act(stocked, number, action="split", field="colour", value="red").status_code == 422


def test_what_makes_no_sense_is_refused_and_says_why(stocked: TestClient) -> None:
    number = one(stocked, "Xid")["id"]
    for asked, field in (
        ({"action": "mute"}, "until"),
        ({"action": "mute", "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"action": "link", "ticket": "javascript:alert(1)"}, "ticket"),
        ({"action": "comment", "text": "  "}, "text"),
        ({"action": "merge", "groups": [number]}, "groups"),
    ):
        answer = act(stocked, number, **asked)
        assert answer.status_code == 422, asked
        assert answer.json()["errors"][0]["field"] == field
    assert act(stocked, 999, action="resolve").status_code == 404


def failure(client: TestClient, job: str) -> int:
    attempts = client.get(f"/api/v1/jobs/orion/{job}").json()["attempts"]
    return int(attempts[0]["failure_id"])


def say(client: TestClient, number: int, **given: Any) -> Any:
    return client.post(f"/api/v1/failures/{number}/feedback", json=given)


def test_a_correction_is_a_new_version_that_no_machine_overrules(stocked: TestClient, world: World) -> None:
    number = failure(stocked, "odd")
    taken = say(stocked, number, kind="correct", cause="SYS.5", note="the registry was down").json()
    assert (taken["version"], taken["changed"]) == (2, True)
    result = stocked.get(f"/api/v1/failures/{number}").json()
    row, verdict = result["failure"], result["verdict"]
    assert (row["side"], row["cause"], row["abstained"], row["source"]) == ("system", "SYS.5", False, "person")
    assert (verdict["confidence"], verdict["retry_outlook"], verdict["model"]) == (1.0, "helps", "a person")
    assert verdict["decision"] in {"resubmit_now", "resubmit_after"}
    assert "down or too busy" in verdict["explanation"]
    assert [version["source"] for version in result["versions"]] == ["person", "machine"]
    with world.store.unit_of_work() as work:
        assert work.failures.revise(number, result["versions"][1]["body"]) is None
        kinds = [message.type for message in work.outbox.lease("test", limit=50, seconds=1)]
    assert kinds.count("failure.revised") == 1
    output = stocked.get(f"/api/v1/failures/{number}/feedback").json()
    assert output["items"][0]["said_cause"] == "USER.1"
    assert output["items"][0]["note"] == "the registry was down"


def test_a_confirmation_stands_without_news(stocked: TestClient, world: World) -> None:
    number = failure(stocked, "x0")
    taken = say(stocked, number, kind="confirm").json()
    assert (taken["version"], taken["changed"]) == (2, False)
    with world.store.unit_of_work() as work:
        assert "failure.revised" not in {message.type for message in work.outbox.lease("t", limit=50, seconds=1)}
    assert say(stocked, number, kind="confirm", version=1).status_code == 409


def test_people_who_disagree_and_owners_who_contest_are_queued(stocked: TestClient, world: World) -> None:
    number = failure(stocked, "odd")
    say(stocked, number, kind="correct", cause="SYS.5")
    assert stocked.get("/api/v1/feedback").json()["items"] == []
    world.clock.at += timedelta(minutes=1)
    ana, bo = world.token("act", "read", name="ana"), world.token("act", "read", name="bo")
    with world.client(ana) as client:
        assert say(client, number, kind="correct", cause="USER.4").json()["label"]["disputed"]
        [queued] = client.get("/api/v1/feedback").json()["items"]
        assert queued["failure"]["id"] == number
        assert [output["who"] for output in queued["said"]] == ["this machine", "ana"]
        assert say(client, failure(client, "x0"), kind="contest", note="not my node").json()["label"]["contested"]
        assert len(client.get("/api/v1/feedback").json()["items"]) == 2
    reader = world.token("read", name="reader")
    with world.client(reader) as client:
        assert say(client, number, kind="contest").status_code == 200
        assert say(client, number, kind="confirm").status_code == 403
    with world.client(bo) as client:
        assert not say(client, failure(client, "x0"), kind="confirm").json()["label"]["contested"]


def test_many_failures_and_a_group_take_the_same_judgement(stocked: TestClient) -> None:
    modules = one(stocked, "flash_attn")["id"]
    result = stocked.post(f"/api/v1/groups/{modules}/feedback", json={"kind": "correct", "cause": "USER.4"}).json()
    assert len(result["items"]) == 3
    assert (one(stocked, "flash_attn")["cause"], one(stocked, "flash_attn")["abstained"]) == ("USER.4", False)
    stocked.post("/api/v1/events", content=lines(event("after")))
    assert one(stocked, "flash_attn")["cause"] == "USER.4"
    numbers = [failure(stocked, "x0"), failure(stocked, "x1"), 10**9]
    result = stocked.post("/api/v1/feedback", json={"kind": "confirm", "failures": numbers}).json()
    assert [item["failure_id"] for item in result["items"]] == numbers[:2]


def test_of_many_only_those_are_judged_that_say_what_was_looked_at(stocked: TestClient) -> None:
    numbers = [failure(stocked, "x0"), failure(stocked, "x1")]
    say(stocked, numbers[1], kind="correct", cause="HW.NODE.1")
    asked = {"kind": "correct", "side": "system", "symptom": "none", "failures": numbers}
    assert stocked.post("/api/v1/feedback", json=asked | {"versions": [1]}).json()["errors"][0]["field"] == "versions"
    result = stocked.post("/api/v1/feedback", json=asked | {"versions": [1, 1]}).json()
    assert [(item["failure_id"], item["changed"]) for item in result["items"]] == [(numbers[0], True)]
    assert stocked.get(f"/api/v1/failures/{numbers[0]}").json()["failure"]["side"] == "system"
    assert stocked.get(f"/api/v1/failures/{numbers[1]}").json()["failure"]["cause"] == "HW.NODE.1"


def test_golden_labels_stay_after_later_judgements(stocked: TestClient) -> None:
    number = failure(stocked, "odd")
    assert stocked.put(f"/api/v1/failures/{number}/golden", json={"golden": True}).status_code == 409
    say(stocked, number, kind="correct", cause="SYS.5")
    assert stocked.put(f"/api/v1/failures/{number}/golden", json={"golden": True}).status_code == 200
    say(stocked, number, kind="correct", cause="USER.1")
    label = stocked.get(f"/api/v1/failures/{number}/feedback").json()["label"]
    assert (label["labels"]["cause"], label["golden"]) == ("SYS.5", True)
    assert stocked.get(f"/api/v1/failures/{number}").json()["failure"]["cause"] == "SYS.5"


def test_exported_labels_are_what_training_reads_and_come_in_again(
    stocked: TestClient, world: World, tmp_path: Path
) -> None:
    say(stocked, failure(stocked, "odd"), kind="correct", cause="SYS.5", category="none", model_shown=False)
    say(stocked, failure(stocked, "x0"), kind="contest")
    exported = stocked.get("/api/v1/labels").content
    (tmp_path / "labels.jsonl").write_bytes(exported)
    [case] = labelled_cases.read_file(tmp_path / "labels.jsonl")
    assert (case.labels.best["side"], case.labels.best["cause"], case.labels.best["retry"]) == (
        "system",
        "SYS.5",
        None,
    ), "only what a person said"
    assert case.provenance["model_shown"] is False
    assert "SomethingError" in case.raw.streams[0].text
    assert b"hunter22" not in exported
    world.clock.at += timedelta(minutes=1)
    changed = orjson.loads(exported)
    changed["labels"] |= {"side": "user", "cause": "USER.4", "retry": "futile"}
    changed["provenance"]["who"] = "elsewhere"
    result = stocked.post("/api/v1/labels", content=orjson.dumps(changed) + b"\n{broken\n").json()
    assert (result["taken"], len(result["wrong"])) == (1, 1)
    number = failure(stocked, "odd")
    assert stocked.get(f"/api/v1/failures/{number}").json()["failure"]["cause"] == "USER.4"
    imported = stocked.get(f"/api/v1/failures/{number}/feedback").json()["items"][-1]
    assert imported["who"] == "this machine"
    assert imported["note"].endswith("author in the file, not verified: elsewhere")


def test_the_weekly_sample_is_judged_blind_and_once(stocked: TestClient, world: World) -> None:
    world.clock.at += timedelta(days=7)
    assert world.services.feedback.draw() == 6
    assert world.services.feedback.draw() == 0
    sample = stocked.get("/api/v1/audits/2026-W47").json()["items"]
    assert len(sample) == 6
    assert not {"side", "cause", "verdict"} & set(sample[0])
    where = f"/api/v1/audits/2026-W47/{sample[0]['failure_id']}"
    assert stocked.post(where, json={"kind": "correct"}).status_code == 422
    assert stocked.post(where, json={"kind": "correct", "side": "user", "cause": "USER.1"}).status_code == 200
    assert stocked.post(where, json={"kind": "correct", "side": "user", "cause": "USER.1"}).status_code == 409
    assert [one["right"] for one in stocked.get("/api/v1/audits/2026-W47").json()["items"]].count(None) == 5


@pytest.mark.parametrize(("zone", "week"), [("Pacific/Auckland", "2026-W48"), ("America/Los_Angeles", "2026-W47")])
def test_the_sample_is_of_the_report_s_week(tmp_path: Path, zone: str, week: str) -> None:
    world = make_world(tmp_path, timezone=zone)
    noon_of_sunday = "2026-11-22T12:00:00+00:00"  # Monday in Auckland, still Sunday in Los Angeles
    world.clock.at = NOW + timedelta(days=4)
    with world.client() as client:
        posted = client.post("/api/v1/events", content=lines(event("1", started_at=None, ended_at=noon_of_sunday)))
        assert posted.json()["accepted"] == 1
        world.services.feedback.draw()
        world.clock.at += timedelta(weeks=1)
        world.services.feedback.draw()
        assert len(client.get(f"/api/v1/audits/{week}").json()["items"]) == 1
        assert client.get(f"/api/v1/reports/{week}").json()["week"] == week
    world.store.close()


def test_an_export_is_a_file_that_no_spreadsheet_reckons_with(stocked: TestClient) -> None:
    answer = stocked.get("/api/v1/failures/export.csv?cluster=orion")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == 6
    assert {row["user"] for row in rows} >= {"'=HYPERLINK(1)", "ana"}
    assert "attachment" in answer.headers["Content-Disposition"]
    assert len(stocked.get("/api/v1/failures/export.json?side=hardware").json()) == 2
    assert stocked.get("/api/v1/failures/export.json?side=nothing").json() == []
    assert stocked.get("/api/v1/failures/export.csv?since=yesterday").status_code == 422


def test_facets_count_what_fits(stocked: TestClient) -> None:
    result = stocked.get("/api/v1/facets?cluster=orion").json()
    assert (result["of"], result["whole"]) == (6, True)
    assert {one["value"]: one["failures"] for one in result["counts"]["side"]} == {
        "user": 3,
        "hardware": 2,
        "unknown": 1,
    }
    assert stocked.get("/api/v1/facets?q=flash_attn").json()["of"] == 3
    assert stocked.get(f"/api/v1/facets?group={one(stocked, 'Xid')['id']}").json()["of"] == 2


def test_saved_views_are_one_s_own(stocked: TestClient, world: World) -> None:
    assert stocked.put("/api/v1/views", json={"name": "nights", "query": "side=hardware"}).status_code == 200
    assert stocked.put("/api/v1/views", json={"name": "nights", "query": "side=system"}).status_code == 200
    assert [view["query"] for view in stocked.get("/api/v1/views").json()["items"]] == ["side=system"]
    with world.client(world.token("read", name="bo")) as client:
        assert client.get("/api/v1/views").json()["items"] == []
        assert client.delete("/api/v1/views/nights").status_code == 204
        client.put("/api/v1/views", json={"name": "mine"})
        assert [view["name"] for view in client.get("/api/v1/views").json()["items"]] == ["mine"]
