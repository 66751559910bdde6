"""POST /events and dead letters sent again."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import orjson
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from service.contracts.event import LABELS_MOST, LOGS_MOST, JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import Conflict, Unavailable
from service.formats import node_events, recognise
from service.formats.field_reading import Skipped
from service.formats.recognise import parse
from service.messaging.batch_result import BatchOutcome
from service.web.api.node_events import submit as submit_node_events
from service.web.event_intake import lines_of, submit
from service.web.resending import resend
from tests.service.web.world import NOW, World, event, lines, log

EVENTS = "/api/v1/events"


def post(client: TestClient, *events: Any, query: str = "", **headers: str) -> dict[str, Any]:
    answer = client.post(EVENTS + query, content=lines(*events), headers=headers)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


def test_one_object_is_stored_and_its_failure_shown(client: TestClient) -> None:
    result = post(client, event())
    assert (result["accepted"], result["duplicates"], result["rejected"], len(result["ids"])) == (1, 0, [], 1)
    assert result["verdicts"] is None
    [item] = client.get("/api/v1/failures").json()["items"]
    assert (item["cluster"], item["job_id"], item["side"], item["cause"]) == ("orion", "7", "user", "USER.1")


def test_an_object_may_be_laid_out_over_many_lines(client: TestClient) -> None:
    pretty = orjson.dumps(event(), option=orjson.OPT_INDENT_2)
    assert post(client, pretty)["accepted"] == 1


def test_a_bad_line_rejects_only_itself_and_is_kept_as_a_dead_letter(client: TestClient) -> None:
    secret = b'{"cluster": "orion", "job_id": "9", "status": "failed", "token": "ghp_' + b"a" * 36 + b'"}'
    result = post(client, event("1"), b"{broken", b"", event("2"), secret, event("3", status="over"))
    assert result["accepted"] == 2
    assert [(bad["line"], bad["field"]) for bad in result["rejected"]] == [
        (2, "(whole record)"),
        (5, "ended_at"),
        (6, "status"),
    ]
    assert all(bad["expected"] for bad in result["rejected"])
    letters = client.get("/api/v1/dead-letters").json()["items"]
    assert {letter["place"] for letter in letters} == {f"POST /api/v1/events line {n}" for n in (2, 5, 6)}
    assert "ghp_" not in client.get("/api/v1/dead-letters").text + client.get("/dead-letters").text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"note": [[[]]] * 3, "logs": [{}] * (LOGS_MOST + 1)}, "logs"),
        ({"logs": [1] * (LOGS_MOST + 1)}, "logs"),
        ({"labels": {str(n): 1 for n in range(LABELS_MOST + 1)}}, "labels"),
        ({"exit_code": -9}, "exit_code"),
        ({"gpus": 10**19}, "gpus"),
        ({"team": ["<b>"]}, "team"),
    ],
)
def test_an_event_with_a_bad_optional_field_is_stored_its_problems_shown_and_its_sender_counted(
    client: TestClient, changes: dict[str, Any], field: str
) -> None:
    assert post(client, json.dumps(event("2") | changes).encode())["accepted"] == 1
    page = client.get("/failures/1").text
    assert f"<strong>Problems of the event:</strong> {field}: dropped, expected " in page
    assert re.search(r'faultline_event_problems_total\{source="api[^"]*"\} 1.0', client.get("/metrics").text)


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"7", b'"x"', b"\x00", b"\xff\xfe", b"[" * 100_000, b"{" * 5000])
def test_what_is_no_event_is_rejected_with_what_was_expected(client: TestClient, body: bytes) -> None:
    result = post(client, body)
    assert result["accepted"] == 0
    assert result["rejected"][0]["line"] == 1
    assert result["rejected"][0]["expected"]


def test_the_same_again_is_a_duplicate_and_another_content_a_conflict(client: TestClient) -> None:
    first = post(client, event())
    again = post(client, event(), event(user="bo"))
    assert (again["accepted"], again["duplicates"], again["conflicts"]) == (0, 2, 1)
    assert again["ids"] == first["ids"] * 2
    [item] = client.get("/api/v1/failures").json()["items"]
    assert item["user"] == "ana"
    assert client.get("/api/v1/jobs/orion/7").json()["attempts"][0]["conflicts"] == 1


def test_who_waits_gets_the_verdicts_for_a_repeated_request_too(client: TestClient) -> None:
    xid = event("8", logs=[log("NVRM: Xid 79", 1)])
    for _ in range(2):
        result = post(client, event("7"), xid, event("9", status="succeeded", logs=[]), query="?wait=verdict")
        assert [(verdict["job_id"], verdict["side"]) for verdict in result["verdicts"]] == [
            ("7", "user"),
            ("8", "hardware"),
        ]
        assert result["verdicts"][1]["decision"] == "resubmit_now"
        assert result["verdicts"][1]["exclude_nodes"] == ["gpu018"]


def failing_at_job_13(value: bytes | None, *args: Any, **options: Any) -> JobCompletion | Skipped:
    if b'"13"' in (value or b""):
        raise ZeroDivisionError
    return parse(value, *args, **options)


def test_a_fault_of_the_parser_rejects_only_the_record_that_meets_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognise, "parse", failing_at_job_13)
    done = submit(world.services, lines(event("1"), event("13"), event("2")))
    assert done.accepted == 2
    [rejected] = done.rejected
    assert (rejected.line, rejected.got) == (2, "ZeroDivisionError")
    with world.store.reading() as reading:
        [kept] = reading.dead_letters.page().items
    assert (kept.place, kept.reason) == ("POST /api/v1/events line 2", "reading failed: ZeroDivisionError")
    with pytest.raises(Conflict, match="reading failed: ZeroDivisionError"):
        resend(world.services, kept.id, "ana")
    [_, second] = submit(world.services, lines(event("1"), event("2"))).failures
    with world.store.reading() as reading:
        assert reading.failures.get(second).logs[-1].event["intake_source"] == "api/this machine"


def test_a_fault_of_the_parser_of_node_events_rejects_only_the_record_that_meets_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_events, "parse", Mock(side_effect=ZeroDivisionError))
    assert submit_node_events(world.services, b"{}", {}).rejected[0].got == "ZeroDivisionError"
    with pytest.raises(Conflict, match="reading failed: ZeroDivisionError"):
        resend(world.services, 1, "ana")


def test_an_event_that_fails_once_is_stored_at_the_second_try(world: World) -> None:
    handle, failing = world.services.ingest, [ZeroDivisionError()]

    def once(events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        if failing:
            raise failing.pop()
        return handle(events, dead)

    done = submit(replace(world.services, ingest=once), lines(event("1")))
    assert (done.accepted, done.rejected) == (1, [])


def test_a_database_that_does_not_answer_fails_the_request_at_once(world: World) -> None:
    ingest = Mock(side_effect=Unavailable("the database does not answer"))
    with pytest.raises(Unavailable):
        submit(replace(world.services, ingest=ingest), lines(event("1"), event("2")))
    ingest.assert_called_once()


def test_each_broken_line_is_rejected_and_a_broken_object_of_several_lines_once(client: TestClient) -> None:
    result = post(client, b"{broken", b"", b' {"cluster": 1,}')
    assert [one["line"] for one in result["rejected"]] == [1, 3]
    assert len(client.get("/api/v1/dead-letters").json()["items"]) == 2
    laid_out = orjson.dumps(event(logs=[log("x"), log("y")]), option=orjson.OPT_INDENT_2)
    result = post(client, laid_out[:-2])
    assert [one["line"] for one in result["rejected"]] == [1]


def test_records_that_are_no_end_are_counted_and_skipped(client: TestClient) -> None:
    running = {"jobid": 5, "cluster": "orion", "state": "RUNNING", "event_type": "job_start"}
    result = post(client, running, event())
    assert (result["accepted"], result["skipped"]) == (1, 1)


def test_a_cloud_event_in_binary_mode_is_read_by_its_headers(client: TestClient) -> None:
    headers = {"ce-specversion": "1.0", "ce-type": "job", "ce-source": "/x", "ce-id": "1"}
    assert post(client, event(), **headers)["accepted"] == 1
    result = post(client, event("8"), **{**headers, "ce-specversion": "0.3"})
    assert result["rejected"][0]["field"] == "specversion"


def test_a_record_without_a_cluster_takes_the_named_one(client: TestClient) -> None:
    nameless = {key: value for key, value in event().items() if key != "cluster"}
    assert post(client, nameless)["rejected"][0]["field"] == "cluster"
    assert post(client, nameless, query="?cluster=lyra")["accepted"] == 1
    assert client.get("/api/v1/jobs/lyra/7").status_code == 200


def test_more_events_than_one_batch_holds(client: TestClient) -> None:
    many = [event(str(number), status="succeeded", logs=[]) for number in range(1_201)]
    result = post(client, *many)
    assert result["accepted"] == 1_201
    assert client.get("/api/v1/stats").json()["stats"]["succeeded"] == 1_201


@given(st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=8))
def test_every_line_is_accounted_for(parts: list[bytes]) -> None:
    body = b"\n".join(parts)
    found = lines_of(body)
    assert found
    result = b"\n".join(raw for _, raw in found)
    assert [line for line in result.split(b"\n") if line.strip()] == [
        line for line in body.split(b"\n") if line.strip()
    ]
    assert all(1 <= number <= max(1, len(parts)) for number, _ in found)


def letter(world: World, text: str, place: str = "jobs/0/5") -> int:
    with world.store.unit_of_work() as work:
        [made] = work.dead_letters.add([DeadLetter(text, "0" * 64, place, "was too new")])
    return made


def test_a_letter_that_can_be_read_by_now_is_stored(world: World, client: TestClient) -> None:
    made = letter(world, lines(event()).decode())
    result = client.post(f"/api/v1/dead-letters/{made}:resend").json()
    assert (result["id"], result["outcome"]) == (made, "accepted")
    assert client.get(f"/api/v1/failures/{result['failure_id']}").status_code == 200
    assert client.get("/api/v1/dead-letters").json()["items"][0]["resent_at"] is not None
    assert client.post(f"/api/v1/dead-letters/{made}:resend").json()["outcome"] == "duplicate"


def test_a_letter_from_a_topic_takes_the_topics_name_as_its_cluster(world: World, client: TestClient) -> None:
    nameless = {key: value for key, value in event().items() if key != "cluster"}
    made = letter(world, lines(nameless).decode(), "slurm/jobs/0/5")
    assert client.post(f"/api/v1/dead-letters/{made}:resend").status_code == 200
    assert client.get("/api/v1/jobs/slurm%2Fjobs/7").status_code in {200, 404}
    assert client.get("/api/v1/failures").json()["items"][0]["cluster"] == "slurm/jobs"


def test_a_letter_from_a_topic_takes_the_cluster_that_the_settings_name_for_it(world: World) -> None:
    shown = {"kafka_topics": "other,api_key=[redacted]"}  # as on the page of settings
    services = replace(world.services, settings=shown, topics={"other": "other", "api_key": "orion"})
    nameless = {key: value for key, value in event().items() if key != "cluster"}
    resend(services, letter(world, lines(nameless).decode(), "api_key/0/5"), "ana")
    assert world.client().get("/api/v1/failures").json()["items"][0]["cluster"] == "orion"


def test_a_letter_that_still_can_not_be_read_stays_and_says_why(world: World, client: TestClient) -> None:
    made = letter(world, "{broken")
    answer = client.post(f"/api/v1/dead-letters/{made}:resend")
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["field"] == "(whole record)"
    assert client.get("/api/v1/dead-letters").json()["items"][0]["resent_at"] is None
    assert client.post("/api/v1/dead-letters/999:resend").status_code == 404


def test_a_dead_letter_that_is_not_the_end_of_a_job_is_reported(world: World, client: TestClient) -> None:
    made = letter(world, '{"jobid": 5, "cluster": "orion", "state": "RUNNING", "event_type": "job_start"}')
    assert client.post(f"/api/v1/dead-letters/{made}:resend").json()["outcome"] == "skipped"


def test_a_clock_that_is_wrong_is_stored_and_flagged(client: TestClient) -> None:
    post(client, event(ended_at=(NOW + timedelta(days=3)).isoformat()))
    assert client.get("/api/v1/jobs/orion/7").json()["attempts"][0]["clock_suspect"] is True
