"""A token of a cluster or team gets nothing beyond it; `tests/service/web/test_app.py` tries each purpose."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import select

from service.db.all_tables import metadata
from service.errors import InvalidInput
from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from tests.service.databases import engine_of
from tests.service.web.access.test_auth import form_token, log_in
from tests.service.web.test_app import PUBLIC, VALUES, WANTED
from tests.service.web.world import NOW, World, event, lines, make_world

OTHER = 2  # the failure of another cluster
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


def test_a_sender_of_one_team_moves_no_node_of_the_cluster(world: World) -> None:
    """Nodes that share a rack fail together: whoever names their racks decides what counts as an incident of all."""

    def rack(node: str) -> str | None:
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
        with world.store.reading() as reading:
            return reading.suspicion.get("orion", node).rack

    with world.client(token(world, "ingest")) as client:
        told = event("250", team="speech", nodes=["rk1"], topology={"rk1": {"rack": "r1"}})
        client.post("/api/v1/events", content=lines(told))
    assert rack("rk1") == "r1"
    with world.client(token(world, "ingest", teams=["vision"])) as client:
        forged = event("251", nodes=["rk1"], topology={"rk1": {"rack": "r2"}})
        [number] = client.post("/api/v1/events?wait=verdict", content=lines(forged)).json()["verdicts"]
    assert rack("rk1") == "r1"
    with world.client(token(world, "admin")) as client:
        [logs] = client.get(f"/api/v1/failures/{number['failure_id']}").json()["logs"]
    assert logs["event"]["intake_problems"][0].startswith("topology: dropped")


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


WORKINGS = {"audit_log", "dead_letters", "login_attempts", "saved_views", "sessions", "tokens"}  # of the caller itself
BODIES: dict[str, Any] = {
    "/api/v1/feedback": {"kind": "correct", "cause": "SYS.5", "failures": [OTHER]},
    "/api/v1/failures/{failure_id}/feedback": {"kind": "correct", "cause": "SYS.5"},
    "/api/v1/failures/{failure_id}/fixed-by": {"code": "M2"},
    "/api/v1/failures/{failure_id}/golden": {"golden": True},
    "/api/v1/audits/{week}/{failure_id}": {"kind": "correct", "side": "system", "cause": "SYS.5"},
    "/api/v1/groups/{group_id}/actions": {"action": "comment", "text": "x"},
    "/api/v1/groups/{group_id}/feedback": {"kind": "correct", "cause": "SYS.5"},
    "/api/v1/incidents": {"cluster": "vega", "kind": "node", "value": "gpu018"},
    "/api/v1/resubmissions:lease": {"hook": "h", "cluster": "vega"},
    "/api/v1/resubmissions/{request_id}:ack": {"result": "done"},
    "/api/v1/resubmissions/{request_id}:fail": {"error": "x"},
    "/api/v1/policy:replay": {"policy": ""},
    "/api/v1/report-subscriptions": {"endpoint": "people"},
    "/api/v1/views": {"name": "x", "query": ""},
}
# Of all forms: each ignores the fields of others.
FIELDS = {
    "kind": "correct",
    "cause": "SYS.5",
    "failure": f"{OTHER}.1",
    "judged": str(OTHER),
    "group": str(OTHER),
    "action": "resolve",
    "fixed_by": "M2",
    "cluster": "vega",
    "value": "gpu018",
    "reason": "x",
    "code": "M2",
    "name": "x",
    "purpose": "admin",
    "endpoint": "people",
    "text": "x",
    "retry": "helps",
    "number": "1",
}


@pytest.fixture(scope="module")
def vega(world: World) -> dict[str, str]:
    """What another cluster has, by the parameter of a path; a hook of it holds a request."""
    with world.client(token(world, "admin")) as client:
        failed = lines(event("400", cluster="vega"))
        [verdict] = client.post("/api/v1/events?wait=verdict", content=failed).json()["verdicts"]
        client.post(f"/api/v1/failures/{verdict['failure_id']}:resubmit")
        [lease] = client.post("/api/v1/resubmissions:lease", json={"hook": "h", "cluster": "vega"}).json()
        incident = client.post("/api/v1/incidents", json=BODIES["/api/v1/incidents"]).json()
        [row] = client.get("/api/v1/groups?cluster=vega").json()["items"]
    own = {"failure_id": str(OTHER), "cluster": "vega", "node": "gpu018", "group_id": str(row["id"])}
    return own | {"request_id": lease["request_id"], "lease": lease["lease_token"], "incident_id": str(incident["id"])}


def everything_of_others(world: World) -> dict[str, list[Any]]:
    """The rows of all tables but those in which each caller leaves traces."""
    with engine_of(world.store).connect() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(table))))
            for name, table in metadata.tables.items()
            if name not in WORKINGS
        }


@pytest.mark.parametrize("bound", [{"clusters": ["orion"]}, {"teams": ["vision"], "clusters": ["orion"]}])
def test_no_request_with_a_token_of_another_place_changes_anything(
    world: World, bound: dict[str, list[str]], vega: dict[str, str]
) -> None:
    """By the path, by ids in the body, and by every form."""
    secret = token(world, "ingest", "read", "act", "labels", **bound)
    labelled = {
        "schema": "labelled-case/1",
        "id": "a",
        "group": "a",
        "kind": "a",
        "event": CASES["other cluster"] | {"logs": []},
        "labels": {"side": "system", "cause": "SYS.5", "category": None, "symptom": None, "retry": None},
        "provenance": {"origin": "operator"},
    }
    streams = {
        "/api/v1/labels": orjson.dumps(labelled),
        "/api/v1/events": lines(event("300", cluster="vega")),
        "/api/v1/node-events": orjson.dumps(
            {"schema": "node-event/1", "cluster": "vega", "node": "gpu018", "at": NOW.isoformat(), "text": "Xid 79"}
        ),
    }
    before = everything_of_others(world)
    with world.client(secret) as client, world.client() as browser:
        log_in(browser, secret)
        form = {**FIELDS, "form_token": form_token(browser, "/failures")}
        for (method, path), scope in WANTED.items():
            if method == "GET" or (scope == PUBLIC and path != "/unsubscribe/{token}"):
                continue
            place = re.sub(r"{(\w+)(:path)?}", lambda found: vega.get(found[1], VALUES.get(found[1], "1")), path)
            if path in streams:
                client.post(place, content=streams[path])
            elif path.startswith("/api/"):
                body = BODIES.get(path, {})
                if "{request_id}" in path:
                    body = body | {"lease_token": vega["lease"]}
                status = client.request(method, place, json=body).status_code
                assert status in {403, 404, 409, 422} or path.startswith("/api/v1/views"), (path, status)
            else:
                status = browser.post(place, data=form).status_code
                assert status in {403, 404, 409, 422} or path.startswith("/views"), (path, status)
    after = everything_of_others(world)
    assert {name for name, rows in after.items() if rows != before[name]} == set()


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


def test_an_expired_token_opens_nothing_nor_does_a_session_that_began_with_it(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with world.store.unit_of_work() as work:
        _, secret = work.tokens.create("short", ["admin"], expires_at=world.clock.at.replace(hour=13))
    with world.client(secret) as client, world.client() as stranger, world.client() as browser:
        assert log_in(browser, secret) == 303
        world.clock.sleep(3_599)
        assert [client.get("/api/v1/stats").status_code, browser.get("/failures").status_code] == [200, 200]
        world.clock.sleep(1)
        assert [client.get("/api/v1/stats").status_code, browser.get("/failures").status_code] == [401, 303]
        assert stranger.get("/api/v1/stats").status_code == 401  # not open either
    world.store.close()
