"""Every error has one shape."""

import logging
from collections.abc import Sequence

import jsonschema_rs
import pytest
from fastapi.testclient import TestClient

from service.contracts.event import JobCompletion
from service.dead_letters.records import DeadLetter
from service.errors import Unavailable
from service.messaging.batch_result import BatchOutcome
from service.web.error_responses import Problem
from tests.service.web.access.test_auth import form_token
from tests.service.web.world import World, event, lines, make_world

BAD = [
    ("GET", "/api/v1/nothing", 404, None),
    ("GET", "/api/v1/failures/999", 404, None),
    ("GET", "/api/v1/jobs/orion/none", 404, "job_id"),
    ("GET", "/api/v1/schemas/none", 404, "name"),
    ("DELETE", "/api/v1/failures", 405, "method"),
    ("PUT", "/api/v1/events", 405, "method"),
    ("GET", "/api/v1/failures?limit=0", 422, "limit"),
    ("GET", "/api/v1/failures?limit=501", 422, "limit"),
    ("GET", "/api/v1/failures?limit=x", 422, "limit"),
    ("GET", "/api/v1/failures?cursor=x", 422, "cursor"),
    ("GET", "/api/v1/failures?sort=x", 422, "sort"),
    ("GET", "/api/v1/failures?since=yesterday", 422, "since"),
    ("GET", "/api/v1/failures?until=5", 422, "until"),
    ("GET", "/api/v1/failures?abstained=perhaps", 422, "abstained"),
    ("GET", "/api/v1/failures?side=user&side=system", 422, "side"),
    ("GET", "/api/v1/failures?sidee=user", 422, "sidee"),
    ("GET", "/api/v1/failures/x", 422, "failure_id"),
    ("GET", "/api/v1/failures/0", 422, "failure_id"),
    ("GET", "/api/v1/failures/99999999999999999999", 422, "failure_id"),
    ("GET", "/api/v1/stats?since=2026-13-01", 422, "since"),
    ("GET", "/api/v1/dead-letters?cursor=%00", 422, "cursor"),
    ("POST", "/api/v1/dead-letters/x:resend", 422, "letter_id"),
    ("POST", "/api/v1/events?wait=long", 422, "wait"),
    ("GET", "/health/nothing", 404, None),
]


@pytest.mark.parametrize(("method", "path", "status", "field"), BAD)
def test_an_error_says_which_field_and_what_was_expected(
    client: TestClient, method: str, path: str, status: int, field: str | None
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    jsonschema_rs.validate(Problem.model_json_schema(), problem)
    assert problem["status"] == status
    assert problem["detail"]
    if field is not None:
        assert problem["errors"][0]["field"] == field
        assert problem["errors"][0]["expected"]


def test_a_405_names_everything_that_is_allowed(client: TestClient) -> None:
    for path, allowed in (
        ("/api/v1/events", "POST"),
        ("/api/v1/failures", "GET, HEAD"),
        ("/api/v1/feedback", "GET, HEAD, POST"),
        ("/api/v1/views", "GET, HEAD, PUT"),
        ("/failures/1", "GET, HEAD"),
    ):
        answer = client.patch(path)
        assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    assert client.patch("/api/v1/feedback").json()["errors"] == [
        {"field": "method", "expected": "GET, HEAD, POST", "got": "PATCH"}
    ]


def test_one_status_has_one_title(client: TestClient) -> None:
    for path in ("/api/v1/nothing", "/api/v1/failures/999", "/api/v1/schemas/none"):
        assert client.get(path).json()["title"] == "Not found"
    assert client.delete("/api/v1/failures").json()["title"] == "Method not allowed"


def test_a_page_tells_people_the_same_in_words(client: TestClient) -> None:
    for path, status, word in (
        ("/nothing", 404, "nothing"),
        ("/failures/999", 404, "No failure 999"),
        ("/failures?limit=0", 422, "limit"),
        ("/failures?since=yesterday", 422, "24h"),
        ("/failures?abstained=perhaps", 422, "true or false"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert word in answer.text
        assert '<nav id="menu"' in answer.text, "one can go on from here"


def test_an_internal_error_is_logged_and_reported_without_details(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        del events, dead
        raise RuntimeError("hunter2")

    object.__setattr__(world.services, "ingest", broken)
    with world.client() as client, caplog.at_level(logging.ERROR):
        answer = client.post("/api/v1/events", content=lines(event()))
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "hunter2" not in answer.text
    assert "Content-Security-Policy" in answer.headers
    assert "POST /api/v1/events failed" in caplog.text


def test_what_only_the_sender_can_correct_is_not_logged(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        answer = client.post("/api/v1/events", content=b"x", headers={"Content-Encoding": "br"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (415, "Content-Encoding")
        assert client.get("/api/v1/failures?limit=0").status_code == 422
    assert not caplog.records


def test_a_database_that_is_down_is_a_503(world: World) -> None:
    def down(events: Sequence[JobCompletion], dead: Sequence[DeadLetter] = ()) -> BatchOutcome:
        del events, dead
        raise Unavailable("the database does not answer")

    object.__setattr__(world.services, "ingest", down)
    with world.client() as client:
        answer = client.post("/api/v1/events", content=lines(event()))
    assert (answer.status_code, answer.json()["title"]) == (503, "Unavailable")


def test_ready_says_what_is_missing(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = make_world(tmp_path_factory.mktemp("unready"), model=None)
    with world.client() as client:
        assert client.get("/health/live").json() == {"status": "alive"}
        answer = client.get("/health/ready")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (503, "model")
        assert "No model is loaded" in client.get("/model").text
    world.store.close()


def test_what_a_form_refuses_is_said_once_in_words_with_a_way_back(client: TestClient) -> None:
    assert client.post("/api/v1/events", content=lines(event("1"))).json()["accepted"] == 1
    [group] = client.get("/api/v1/groups").json()["items"]
    token = form_token(client, "/groups")
    for fields, said in (
        ({"action": "merge", "groups": "abc"}, "<b>groups</b>: expected a whole number, got <code>abc</code>."),
        ({"action": "mute", "failures": "many"}, "<b>failures</b>: expected a whole number, got <code>many</code>."),
    ):
        page = client.post(f"/groups/{group['id']}/act", data={"form_token": token, **fields}).text
        assert said in page
        assert page.count("whole number") == 1
        assert '<a href="/groups">Groups</a> <a href="/">Overview</a>' in page.partition("<main")[2]
    assert (
        "<b>failure id</b>: expected a whole number, got <code>&#39;abc&#39;</code>."
        in client.get("/failures/abc").text
    )


def test_a_group_without_an_assignee_gets_its_own_message(client: TestClient) -> None:
    assert client.post("/api/v1/events", content=lines(event("1"))).json()["accepted"] == 1
    [group] = client.get("/api/v1/groups").json()["items"]
    address = f"/groups/{group['id']}"
    for to, notice, text in (("ana", "assign", "Assigned."), ("  ", "unassign", "Nobody is assigned any more.")):
        sent = {"form_token": form_token(client, "/groups"), "action": "assign", "to": to}
        assert client.post(f"{address}/act", data=sent).headers["location"] == f"{address}?notice={notice}"
        assert text in client.get(f"{address}?notice={notice}").text


def test_an_owner_who_follows_another_s_link_learns_what_the_account_shows(guarded: World) -> None:
    with guarded.client(guarded.token("read", teams=["vision"])) as client:
        assert "You see the failures of your own jobs or teams only." in client.get("/failures/1").text
    with guarded.client(guarded.token("read", name="all")) as client:
        assert "You see the failures" not in client.get("/failures/1").text
