"""Nodes by API and page: what is suspected, what was said, and a repair."""

import html
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import orjson
import pytest

from service.dead_letters.records import DeadLetter
from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.web.resending import resend
from tests.service.web.world import NOW, World, event, lines, log, make_world

XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=12, GPU has fallen off the bus."


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def node_event(**changes: Any) -> dict[str, Any]:
    plain = {
        "schema": "node-event/1",
        "cluster": "orion",
        "node": "gpu018",
        "at": (NOW - timedelta(minutes=31)).isoformat(),
        "source": "kernel",
        "text": XID,
        "gpu": 3,
    }
    return {name: value for name, value in {**plain, **changes}.items() if value is not None}


def filled(world: World) -> None:
    client = world.client()
    client.post("/api/v1/node-events", content=lines(node_event()))
    jobs = [event(str(n), logs=[log("Xid 79")], attempt=n) for n in range(3)]
    good = [event(f"ok{n}", status="succeeded", nodes=["gpu001", "gpu002"], logs=[]) for n in range(5)]
    client.post("/api/v1/events", content=lines(*jobs, *good))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()


def test_node_events_are_counted_and_a_bad_line_rejects_only_itself(world: World) -> None:
    client = world.client()
    answer = client.post(
        "/api/v1/node-events", content=lines(node_event(), node_event(kind="explosion"), node_event(), b"{")
    )
    assert answer.status_code == 200
    body = answer.json()
    assert (body["accepted"], body["duplicates"], body["skipped"]) == (1, 1, 0)
    assert [(one["line"], one["field"]) for one in body["rejected"]] == [(2, "kind"), (4, "(whole record)")]
    assert "gpu_lost" in body["rejected"][0]["expected"]
    again = client.post("/api/v1/node-events", json=node_event())
    assert (again.json()["accepted"], again.json()["duplicates"]) == (0, 1)
    letters = client.get("/api/v1/dead-letters").json()["items"]
    assert {letter["place"] for letter in letters} == {
        "POST /api/v1/node-events line 2",
        "POST /api/v1/node-events line 4",
    }


def test_plain_lines_come_with_the_cluster_in_the_address(world: World) -> None:
    text = f"2026-11-20T11:29:00Z gpu018 kernel: {XID}\n\n2026-11-20T11:29:01Z gpu019 kernel: {XID}\n"
    answer = world.client().post(
        "/api/v1/node-events?cluster=orion", content=text, headers={"content-type": "text/plain"}
    )
    assert answer.json() == {"accepted": 2, "duplicates": 0, "skipped": 0, "rejected": []}


def test_what_is_too_much_is_refused(world: World) -> None:
    client = world.client()
    assert client.post("/api/v1/node-events", content=b"a" * (17 * 1024 * 1024)).status_code == 413
    assert client.post("/api/v1/node-events", content=b"a\n" * 100_001).status_code == 413
    assert client.post("/api/v1/node-events", content=b"").json()["rejected"][0]["line"] == 1


def test_nodes_are_listed_by_suspicion_and_paged(world: World) -> None:
    filled(world)
    client = world.client()
    first = client.get("/api/v1/nodes?limit=1").json()
    assert [row["node"] for row in first["items"]] == ["gpu018"]
    assert first["items"][0]["rate_ratio"] > 1
    rest = client.get(f"/api/v1/nodes?limit=5&cursor={first['next_cursor']}").json()
    assert {row["node"] for row in rest["items"]} == {"gpu001", "gpu002"}
    assert rest["next_cursor"] is None
    named = client.get("/api/v1/nodes?sort=node&cluster=orion").json()["items"]
    assert [row["node"] for row in named] == ["gpu001", "gpu002", "gpu018"]
    assert client.get("/api/v1/nodes?cluster=nobody").json()["items"] == []
    for wrong in ("limit=0", "limit=501", "sort=age", "cursor=abc", f"sort=node&cursor={first['next_cursor']}", "x=1"):
        assert client.get(f"/api/v1/nodes?{wrong}").status_code == 422


def test_columns_of_nodes_are_sorted_by_their_headers(world: World) -> None:
    filled(world)
    page = html.unescape(world.client().get("/nodes?cluster=orion").text)
    assert '<th><a href="/nodes?cluster=orion&sort=node">Node</a></th>' in page
    assert '<th class="n" aria-sort="descending"><a href="/nodes?cluster=orion">Relative rate' in page
    named = html.unescape(world.client().get("/nodes?sort=node&limit=1").text)
    assert '<th aria-sort="ascending"><a href="/nodes?limit=1&sort=node">Node' in named
    assert '<th class="n"><a href="/nodes?limit=1">Relative rate</a></th>' in named


def test_the_page_of_a_node_shows_its_events_and_failures(world: World) -> None:
    filled(world)
    client = world.client()
    found = client.get("/api/v1/nodes/orion/gpu018").json()
    assert found["node"]["failures"] == 3
    assert [one["text"] for one in found["events"]] == [XID]
    assert len(found["failures"]) == 3
    assert client.get("/api/v1/nodes/orion/nobody").status_code == 404


def test_a_repair_needs_the_right_and_clears(world: World) -> None:
    filled(world)
    reader = world.client(world.token("read"))
    assert reader.post("/api/v1/nodes/orion/gpu018:repaired", json={}).status_code == 403
    actor = world.client(world.token("read", "act", name="ana"))
    answer = actor.post("/api/v1/nodes/orion/gpu018:repaired", json={"note": "GPU 3 replaced"})
    assert answer.status_code == 200
    assert answer.json()["changed"] is True
    node = answer.json()["node"]
    assert (node["blame"], node["repaired_by"], node["repair_note"]) == (0, "ana", "GPU 3 replaced")
    assert actor.post("/api/v1/nodes/orion/nobody:repaired", json={}).status_code == 404
    ahead = {"at": (NOW + timedelta(days=1)).isoformat()}
    assert actor.post("/api/v1/nodes/orion/gpu018:repaired", json=ahead).status_code == 422
    assert actor.post("/api/v1/nodes/orion/gpu018:repaired", json={"by": "me"}).status_code == 422


def test_the_last_event_of_a_node_is_at_its_own_time(world: World) -> None:
    filled(world)
    client = world.client()
    # An older one that comes late is not the last.
    client.post("/api/v1/node-events", content=lines(node_event(at=(NOW - timedelta(hours=2)).isoformat())))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    last = {one["node"]: one["last_event_at"] for one in client.get("/api/v1/nodes").json()["items"]}
    assert datetime.fromisoformat(last["gpu018"]) == NOW - timedelta(minutes=31)
    assert last["gpu001"] is None


def test_the_pages_say_it_in_words_and_the_form_repairs(world: World) -> None:
    filled(world)
    client = world.client()
    page = client.get("/nodes").text
    assert "gpu018" in page
    detail = client.get("/nodes/orion/gpu018")
    assert XID in detail.text
    assert "Mark as repaired" in detail.text
    token = client.cookies.get("faultline_form") or next(iter(client.cookies.values()))
    form = {"note": "new GPU <b>", "form_token": token}
    done = client.post("/nodes/orion/gpu018/repaired", data=form, headers={"origin": "http://127.0.0.1:8080"})
    assert done.status_code == 303
    listed = client.get("/nodes/orion/gpu018").text.partition("Failures, events and repairs")[2]
    assert listed.count("new GPU") == 1, "the repair is listed once"
    after = client.get(done.headers["location"]).text
    assert "The repair is recorded" in after
    assert "new GPU &lt;b&gt;" in after
    assert client.post("/nodes/orion/gpu018/repaired", data={"form_token": "x"}).status_code == 403


def test_strange_names_make_links_that_work(world: World) -> None:
    client = world.client()
    node = "a/b c?<i>" + "x" * 180
    client.post("/api/v1/node-events", json=node_event(node=node, cluster="a b"))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    page = client.get("/nodes").text
    assert "<i>" not in page
    address = page.split('href="/nodes/')[1].split('"')[0]
    assert client.get(f"/nodes/{address}").status_code == 200


def test_an_empty_fleet_says_so(world: World) -> None:
    assert "No nodes are known yet" in world.client().get("/nodes").text


def test_the_published_schema_takes_what_the_service_takes(world: World) -> None:
    schema = world.client().get("/api/v1/schemas/node-event-1").json()
    jsonschema_rs.meta.validate(schema)
    check = jsonschema_rs.Draft202012Validator(schema)
    assert check.is_valid(node_event())
    assert not check.is_valid(node_event(node=None))
    assert not check.is_valid(node_event(kind="explosion"))


def test_a_failure_s_page_shows_both_sides_of_a_dispute(world: World) -> None:
    client = world.client()
    client.post("/api/v1/node-events", json=node_event(text=f"{XID} <b>"))
    client.post("/api/v1/events", content=lines(event("7")))
    failure = client.get("/api/v1/failures").json()["items"][0]
    page = client.get(f"/failures/{failure['id']}").text
    assert "Log and node events disagree" in page
    assert "From the log alone" in page
    assert "60\u00a0s before the end" in page or "1\u00a0min before the end" in page
    assert "fallen off the bus. &lt;b&gt;" in page
    assert 'href="/nodes/orion/gpu018"' in page


def test_a_dead_letter_of_a_node_is_sent_again_as_what_it_is(world: World) -> None:
    client = world.client()
    client.post("/api/v1/node-events", json=node_event(cluster=None))
    client.post("/api/v1/node-events", content=b"{")
    broken, nameless = client.get("/api/v1/dead-letters").json()["items"]
    assert client.post(f"/api/v1/dead-letters/{broken['id']}:resend").status_code == 409
    again = client.post(f"/api/v1/dead-letters/{nameless['id']}:resend?cluster=orion")
    assert again.json()["outcome"] == "accepted"
    with world.store.reading() as reading:
        assert len(reading.node_events.page("orion", "gpu018").items) == 1


def test_a_dead_letter_of_a_topic_of_nodes_takes_the_cluster_of_the_topic(world: World) -> None:
    with world.store.unit_of_work() as work:
        text = orjson.dumps(node_event(cluster=None)).decode()
        [made] = work.dead_letters.add([DeadLetter(text, "0" * 64, "api_key/0/5", "had no cluster")])
    shown = {"node_event_topic": "api_key=[redacted]"}
    services = replace(world.services, settings=shown, node_event_topics={"api_key": "orion"})
    assert resend(services, made, "ana").outcome == "accepted"
    with world.store.reading() as reading:
        assert len(reading.node_events.page("orion", "gpu018").items) == 1


def test_the_failures_of_a_node_open_those_that_are_counted(world: World) -> None:
    filled(world)
    client = world.client()
    client.post("/api/v1/events", content=lines(event("stopped", status="cancelled", logs=[log("Xid 79")])))
    update = NodeStatisticsUpdater(world.store, world.clock, FleetSettings())
    update()

    def counted(page: str) -> tuple[str, int]:
        found = re.search(r'href="(/failures\?node=gpu018[^"]*)">(\d+) / (\d+)</a>', client.get(page).text)
        assert found is not None
        listed = client.get("/api/v1" + html.unescape(found[1])).json()["items"]
        return found[2], len(listed)

    assert counted("/nodes") == counted("/") == ("3", 3)
    world.services.node_event_intake.repaired("orion", "gpu018", actor="ana", note=None)
    update()
    assert counted("/nodes") == ("0", 0), "what failed before the repair does not count"


def test_the_search_finds_a_node_on_which_no_job_failed(world: World) -> None:
    filled(world)
    client = world.client()
    client.post("/api/v1/node-events", content=lines(node_event(node="gpu019")))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    for name in ("gpu001", "gpu018", "gpu019"):
        assert client.get(f"/search?q={name}").headers["location"] == f"/nodes/orion/{name}"
    elsewhere = event("9", cluster="vega", status="succeeded", nodes=["gpu018", "gpu001"], logs=[])
    client.post("/api/v1/events", content=lines(elsewhere))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    assert client.get("/search?q=gpu018").headers["location"] == "/failures?node=gpu018", "two clusters have it"
    assert client.get("/search?q=nowhere").headers["location"] == "/failures?q=nowhere"


def test_the_overview_lists_the_nodes_that_the_nodes_page_suspects(world: World) -> None:
    client = world.client()
    assert "No node fails more often than expected." in client.get("/").text
    filled(world)
    suspects = client.get("/").text.partition("<h2>Suspect nodes</h2>")[2].partition("</section>")[0]
    statuses = client.get("/nodes").text
    assert ("/nodes/orion/gpu018" in suspects) == ('class="standing suspect"' in statuses)
    assert "gpu001" not in suspects
    expected = 'Suspect node now: <a href="/nodes/orion/gpu018">gpu018</a> (' in client.get("/").text
    assert expected == ("/nodes/orion/gpu018" in suspects)


def test_racks_come_from_the_topology_of_jobs_and_stay_until_a_job_names_others(world: World) -> None:
    client = world.client()
    nodes = ["gpu001", "gpu002", "gpu003"]

    def ended(number: str, **topology: Any) -> None:
        one = event(number, status="succeeded", nodes=nodes, logs=[], topology=topology)
        assert client.post("/api/v1/events", content=lines(one)).json()["accepted"] == 1
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()

    def racks() -> dict[str, list[str | None]]:
        items = client.get("/api/v1/nodes").json()["items"]
        return {one["node"]: [one[kind] for kind in ("rack", "switch", "zone")] for one in items}

    odd = {"rack": ["r"], "switch": ""}
    ended(
        "1",
        gpu001={"rack": "r1", "switch": "s1", "zone": "z"},
        gpu002={"rack": 7},
        gpu003=odd,
        elsewhere={"rack": "r1"},
    )
    assert racks() == {"gpu001": ["r1", "s1", "z"], "gpu002": ["7", None, None], "gpu003": [None] * 3}
    ended("2")
    assert racks()["gpu001"] == ["r1", "s1", "z"]
    ended("3", gpu001={"rack": "r2"})
    assert racks() == {"gpu001": ["r2", None, None], "gpu002": ["7", None, None], "gpu003": [None] * 3}
    page = client.get("/nodes").text
    headings = ["rack 7", "rack r2", "rack not known"]
    assert [page.index(f"<h4>{heading}</h4>") for heading in headings] == sorted(
        page.index(f"<h4>{heading}</h4>") for heading in headings
    )
    assert "rack r2" in client.get("/nodes/orion/gpu001").text


def test_a_map_that_is_cut_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.web.pages.nodes.MOST", 2)
    filled(world)
    assert "The first 2 by cluster and name." in world.client().get("/nodes").text
    assert "The first 2" not in world.client().get("/nodes?cluster=none").text


def slurm_lines(nodes: str, *, switch: str = "leaf1") -> str:
    return f"SwitchName={switch} Level=0 LinkSpeed=1 Nodes={nodes}\n"


def test_a_token_sends_places_of_its_own_clusters_only(world: World) -> None:
    filled(world)
    token = world.token("ingest", clusters=["lyra"])
    client = world.client(token)
    answer = client.post("/api/v1/node-events?cluster=orion", content=slurm_lines("gpu001"))
    assert [one["field"] for one in answer.json()["rejected"]] == ["cluster"]
    with world.store.reading() as reading:
        assert reading.suspicion.get("orion", "gpu001").switch is None


def test_the_places_of_one_request_are_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.web.api.node_events.PLACES_MOST", 3)
    filled(world)
    body = slurm_lines("gpu[001-002]") + slurm_lines("gpu[003-004]", switch="leaf2")
    answer = world.client().post("/api/v1/node-events?cluster=orion", content=body).json()
    assert (answer["accepted"], [one["line"] for one in answer["rejected"]]) == (2, [2])


def test_a_topology_file_is_one_record_whose_errors_name_their_line(world: World) -> None:
    filled(world)
    client = world.client()
    text = "# fabric\n- topology: a\n  tree:\n    switches:\n    - {switch: s1, nodes: 'gpu[001-002]'}\n"
    text += "- topology: b\n  block:\n    blocks:\n    - {block: b1, nodes: gpu001}\n"
    yaml = {"content-type": "application/yaml"}
    answer = client.post("/api/v1/node-events?cluster=orion", content=text, headers=yaml)
    assert answer.json() == {"accepted": 2, "duplicates": 0, "skipped": 0, "rejected": []}
    node = client.get("/api/v1/nodes/orion/gpu001").json()["node"]
    assert (node["switch"], node["block"]) == ("s1", "b1")
    broken = text.replace("'gpu[001-002]'", "'gpu[001'")
    [refused] = client.post("/api/v1/node-events?cluster=orion", content=broken, headers=yaml).json()["rejected"]
    assert (refused["line"], refused["field"]) == (1, "topology.yaml, line 5: [0].tree.switches[0].nodes")


def test_a_dead_letter_with_places_can_be_sent_again(world: World) -> None:
    client = world.client()
    filled(world)
    assert client.post("/api/v1/node-events", content=slurm_lines("gpu[001-002]")).json()["rejected"]
    [letter] = client.get("/api/v1/dead-letters").json()["items"]
    again = client.post(f"/api/v1/dead-letters/{letter['id']}:resend?cluster=orion")
    assert again.json()["outcome"] == "accepted", again.text
    assert client.get("/api/v1/nodes/orion/gpu002").json()["node"]["switch"] == "leaf1"


def test_a_job_that_names_the_block_of_its_nodes_moves_them_there(world: World) -> None:
    client = world.client()
    one = event("1", status="succeeded", nodes=["gpu001"], logs=[], topology={"gpu001": {"block": "b7", "rack": "r1"}})
    client.post("/api/v1/events", content=lines(one))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    node = client.get("/api/v1/nodes/orion/gpu001").json()["node"]
    assert (node["block"], node["rack"], node["switch"]) == ("b7", "r1", None)
    assert "rack r1 · block b7" in client.get("/nodes/orion/gpu001").text


@pytest.mark.parametrize("cluster", ["arn:aws:eks:eu-1:42:cluster/ml", "50%/x", "100%"])
def test_names_of_clusters_may_have_slashes_and_percent_signs(world: World, cluster: str) -> None:
    client = world.client()
    client.post("/api/v1/node-events", content=lines(node_event(cluster=cluster)))
    client.post(
        "/api/v1/events", content=lines(*(event("ml/Job/t", event_id=f"e{n}", cluster=cluster) for n in range(2)))
    )
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    quoted = quote(cluster, safe="")
    job = client.get(f"/api/v1/jobs/{quoted}/ml/Job/t")
    assert (job.status_code, job.json()["cluster"], len(job.json()["attempts"])) == (200, cluster, 2)
    node = client.get(f"/api/v1/nodes/{quoted}/gpu018")
    assert (node.status_code, node.json()["node"]["cluster"]) == (200, cluster)
    assert client.get(f"/nodes/{quoted}/gpu018").status_code == 200
    assert client.post(f"/api/v1/nodes/{quoted}/gpu018:repaired").json()["changed"] is True
    other = client.get("/api/v1/jobs/orion/ml%2FJob%2Ft")
    assert other.status_code == 404
    assert "ml/Job/t on cluster orion" in other.json()["detail"]
