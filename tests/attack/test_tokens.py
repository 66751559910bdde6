"""A token of a cluster or team gets nothing beyond it; `tests/service/web/test_app.py` tries each purpose."""

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from service.errors import InvalidInput
from tests.service.web.world import NOW, World, event, lines, make_world

CASES = {
    "orion": event("1"),
    "other cluster": event("2", cluster="vega"),
    "other team": event("3", team="speech"),
}


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = make_world(Path(tmp_path_factory.mktemp("tokens")), new_database(), host="0.0.0.0")
    with made.client(made.token("admin")) as client:
        client.post("/api/v1/events", content=lines(*CASES.values()))
    yield made
    made.store.close()


def token(world: World, *scopes: str, **bound: list[str]) -> str:
    with world.store.unit_of_work() as work:
        name = f"token {len(work.tokens.list())}"
        return work.tokens.create(name, scopes, **bound)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bound", "sent"),
    [
        ({"clusters": ["orion"]}, {"orion", "other team"}),
        ({"teams": ["vision"]}, {"orion", "other cluster"}),
        ({"clusters": ["orion"], "teams": ["vision"]}, {"orion"}),
    ],
)
def test_a_bound_token_sends_reads_and_acts_in_its_place_only(
    world: World, bound: dict[str, list[str]], sent: set[str]
) -> None:
    with world.client(token(world, "ingest", "read", "act", **bound)) as client:
        answer = client.post("/api/v1/events", content=lines(*CASES.values())).json()
        refused = {one["line"] for one in answer["rejected"]}
        assert refused == {number for number, name in enumerate(CASES, 1) if name not in sent}
        found = client.get("/api/v1/failures").json()["items"]
        jobs = {CASES[name]["job_id"] for name in sent}
        assert {one["job_id"] for one in found} == jobs
        for number, case in enumerate(CASES.values(), 1):
            seen = case["job_id"] in jobs
            assert (client.get(f"/api/v1/failures/{number}").status_code == 200) is seen
            assert (client.get(f"/api/v1/jobs/{case['cluster']}/{case['job_id']}").status_code == 200) is seen
            assert (client.post(f"/api/v1/failures/{number}:never").status_code == 200) is seen
        for digits in (19, 5_000):  # Python reads no number of more than 4,300 digits
            assert client.post(f"/api/v1/failures/{'9' * digits}:hold").status_code == 403
        for path in ("/api/v1/automation:stop", "/api/v1/incidents", "/api/v1/dead-letters/1:resend"):
            assert client.post(path, json={"cluster": "orion", "kind": "node", "value": "x"}).status_code in {403, 422}
        for path in ("/api/v1/stats", "/api/v1/groups", "/api/v1/dead-letters", "/api/v1/labels", "/metrics"):
            assert client.get(path).status_code == 403


def test_a_sender_of_one_cluster_blocks_no_event_of_another(world: World) -> None:
    """The identity of an event without an id is a hash: given as an id, it would make the real event a duplicate."""
    with (
        world.client(token(world, "ingest", clusters=["orion"])) as client,
        world.client(token(world, "admin")) as all_,
    ):
        target = event("99", cluster="vega")
        key = all_.post("/api/v1/events", content=lines(target | {"job_id": "98"})).json()["ids"][0]
        answer = client.post("/api/v1/events", content=lines(event("99", event_id=key))).json()
        assert answer["rejected"][0]["field"] == "event_id"
        nodes = [
            {"schema": "node-event/1", "cluster": c, "node": "n1", "at": NOW.isoformat(), "text": "Xid 79"}
            for c in ("orion", "vega")
        ]
        answer = client.post("/api/v1/node-events", content=b"\n".join(map(orjson.dumps, nodes))).json()
        assert [one["line"] for one in answer["rejected"]] == [2], answer


@pytest.mark.parametrize("bound", [{}, {"teams": ["vision"]}, {"clusters": ["orion"]}])
def test_who_may_send_only_learns_no_verdict_of_an_event_of_others(world: World, bound: dict[str, list[str]]) -> None:
    """The id of an event is known to whoever knows the job: another content under it is no proof of knowing more."""
    secret_line = "ModuleNotFoundError: No module named 'their_project'"
    logs = [{"rank": 0, "node": "gpu018", "stream": "stderr", "tail": f"start\n{secret_line}\n"}]
    job = f"known {bound}"
    with world.client(token(world, "admin")) as client:
        theirs = event(job, team="speech", user="bob", logs=logs)
        assert client.post("/api/v1/events", content=lines(theirs)).json()["accepted"] == 1
    with world.client(token(world, "ingest", **bound)) as client:
        for guess in (event(job, logs=[]), event(job, team="speech", logs=[])):
            answer = client.post("/api/v1/events?wait=verdict", content=lines(guess))
            assert answer.json()["verdicts"] == []
            assert "their_project" not in answer.text
        again = client.post("/api/v1/events?wait=verdict", content=lines(theirs)).json()
        assert len(again["verdicts"]) == (0 if "teams" in bound else 1), "who sent the event gets its verdict again"


def test_a_sender_of_one_team_reports_no_end_of_a_job_of_another(world: World) -> None:
    """It would show the job as finished, and end the requests of its failure."""
    with world.client(token(world, "admin")) as client:
        client.post("/api/v1/events", content=lines(event("200", team="speech", user="bob")))
    later = event("200", attempt=1, status="succeeded", user="bob", logs=[])
    with world.client(token(world, "ingest", teams=["vision"])) as client:
        answer = client.post("/api/v1/events", content=lines(event("201"), later)).json()
        assert answer["accepted"] == 1
        assert [(one["line"], one["field"]) for one in answer["rejected"]] == [(2, "job_id")]
        reused = later | {"attempt": 2, "ended_at": "2027-06-01T00:00:00Z", "started_at": "2027-05-31T00:00:00Z"}
        assert client.post("/api/v1/events", content=lines(reused)).json()["accepted"] == 1, "ids are used again"
    with world.client(token(world, "ingest", teams=["vision", "speech"])) as client:
        assert client.post("/api/v1/events", content=lines(later)).json()["accepted"] == 1


def test_a_hook_leases_and_answers_on_its_cluster_only(world: World) -> None:
    with world.client(token(world, "admin")) as client:
        assert client.post("/api/v1/failures/2:resubmit").status_code == 200
        [lease] = client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "vega"}).json()
    answer = {"lease_token": lease["lease_token"], "result": "done"}
    with world.client(token(world, "hook", clusters=["orion"])) as client:
        assert client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "orion"}).json() == []
        assert client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "vega"}).status_code == 403
        number = lease["request_id"]
        assert client.post(f"/api/v1/resubmissions/{number}:ack", json=answer).status_code == 404
        assert client.post(f"/api/v1/resubmissions/{number}:fail", json=answer | {"error": "x"}).status_code in {
            404,
            422,
        }
    with world.client(token(world, "act", teams=["vision"])) as client:
        assert client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "orion"}).status_code == 403
    with world.client(token(world, "hook", clusters=["vega"])) as client:
        assert client.post(f"/api/v1/resubmissions/{number}:ack", json=answer).status_code == 200


@pytest.mark.parametrize(
    ("scopes", "bound"),
    [
        (["hook"], {}),
        (["hook"], {"clusters": ["a", "b"]}),
        (["hook"], {"clusters": ["a"], "teams": ["t"]}),
        (["admin"], {"clusters": ["a"]}),
        (["publish"], {"teams": ["t"]}),
        (["read"], {"clusters": [""]}),
        (["read"], {"teams": ["a\0b"]}),
    ],
)
def test_a_binding_that_does_not_fit_the_purpose_is_refused(
    world: World, scopes: list[str], bound: dict[str, list[str]]
) -> None:
    with pytest.raises(InvalidInput):
        token(world, *scopes, **bound)


def test_an_expired_token_opens_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with world.store.unit_of_work() as work:
        _, secret = work.tokens.create("short", ["admin"], expires_at=world.clock.at.replace(hour=13))
    with world.client(secret) as client, world.client() as stranger:
        assert client.get("/api/v1/stats").status_code == 200
        world.clock.sleep(3_601)
        assert client.get("/api/v1/stats").status_code == 401
        assert stranger.get("/api/v1/stats").status_code == 401  # not open either
    world.store.close()
