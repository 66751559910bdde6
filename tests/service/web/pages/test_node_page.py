"""The page of one node: one timeline, and commands that take it out of service."""

import re
from datetime import timedelta

from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.web.pages.node_history import commands
from tests.service.web.test_nodes import node_event
from tests.service.web.world import NOW, World, event, lines, log


def test_failures_and_events_are_on_one_time_line(world: World) -> None:
    xid = [log("NVRM: Xid 79, GPU has fallen off the bus", 1)]
    hours = {name: (NOW - timedelta(hours=hour)).isoformat() for name, hour in (("early", 3), ("between", 2))}
    jobs = [event("1", logs=xid), event("2", logs=xid, started_at=hours["early"], ended_at=hours["early"])]
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*jobs))
        client.post("/api/v1/node-events", content=lines(node_event(at=hours["between"], text="NVRM: Xid 48, DBE")))
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
        page = client.get("/nodes/orion/gpu018").text
        latest = client.get("/nodes/orion/gpu018?since=1h").text.partition("<h2>Failures, events and repairs</h2>")[2]
        early = client.get("/nodes/orion/gpu018?since=4h&until=1h").text.partition("<h2>Failures, events")[2]
        wrong = client.get("/nodes/orion/gpu018?since=soon")
    table = page.partition("<h2>Failures, events and repairs</h2>")[2]
    order = [table.index(words) for words in ("job 1 of", "Xid 48, DBE", "job 2 of")]
    assert order == sorted(order)
    assert "scontrol update NodeName=gpu018 State=DRAIN" in page
    assert "job 1 of" in latest
    assert "/nodes/orion/gpu018?since=1h&amp;side=user" in latest
    assert "job 1 of" not in early
    for what in ("Xid 48, DBE", "job 2 of"):
        assert what in early
        assert what not in latest
    assert wrong.status_code == 422
    assert "since: expected a time" in wrong.text


def test_the_causes_that_point_to_a_node_are_counted_and_open_what_they_count(world: World) -> None:
    xid = [log("NVRM: Xid 79, GPU has fallen off the bus", 1)]
    earlier = (NOW - timedelta(hours=3)).isoformat()
    with world.client() as client:
        client.post("/api/v1/events", content=lines(event("1", logs=xid), event("2", logs=xid), event("3")))
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
        page = client.get("/nodes/orion/gpu018").text
        [pointing] = re.findall(r"<p>Failures that point to this node: (.*?)</p>", page)
        [(address, many)] = re.findall(r'<a href="([^"]+)"><strong>(\d+)</strong>', pointing)
        listed = client.get(address.replace("&amp;", "&")).text
        assert many == "2"
        assert listed.count('<td class="what">') == 2
        assert page.index("Take it out of service") < page.index("Mark as repaired")
        world.services.node_event_intake.repaired("orion", "gpu018", actor="ana", note=None)
        client.post("/api/v1/events", content=lines(event("4", logs=xid, started_at=earlier, ended_at=earlier)))
        assert "Failures that point to this node" not in client.get("/nodes/orion/gpu018").text


def test_the_history_of_a_node_is_filtered_by_side_with_its_trend(world: World) -> None:
    def ended(hours: int) -> dict[str, str]:
        at = (NOW - timedelta(hours=hours)).isoformat()
        return {"started_at": at, "ended_at": at}

    xid = [log("NVRM: Xid 79, GPU has fallen off the bus", 1)]
    odd = [log("SomethingError: nobody has seen this before")]
    jobs = [
        event("1", logs=xid, **ended(1)),
        event("2", **ended(30)),
        event("3", logs=xid, **ended(54)),
        event("4", logs=odd, **ended(300)),
    ]
    with world.client() as client:
        client.post("/api/v1/events", content=lines(*jobs))
        client.post("/api/v1/node-events", content=lines(node_event(text="NVRM: Xid 48, DBE")))
        NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()

        def shown(query: str = "") -> tuple[set[str], str]:
            page = client.get(f"/nodes/orion/gpu018{query}").text
            history = page.partition("<h2>Failures, events and repairs</h2>")[2]
            assert "Xid 48, DBE" in history, "events stay in the list"
            [trend] = re.findall(r'<svg class="spark"[^>]*aria-label="[^"]*oldest first: ([^"]*)"', history)
            return set(re.findall(r"job (\d) of", history)), trend.replace("0, ", "")

        assert "by day, last 4 weeks, at most 1 a day." in client.get("/nodes/orion/gpu018").text
        assert shown() == ({"1", "2", "3", "4"}, "1, 1, 1, 1")
        assert shown("?side=hardware") == ({"1", "3"}, "1, 1")
        assert shown("?side=user") == ({"2"}, "1, 0")
        assert shown("?side=unknown") == ({"4"}, "1, 0")
        page = client.get("/nodes/orion/gpu018?side=hardware").text
        [address] = re.findall(r'<td class="what"><a href="(/failures/1[^"]*)"', page)
        assert "side=hardware" in address
        assert "older<span" in client.get(address.replace("&amp;", "&")).text, "leads on to job 3"
        assert client.get("/nodes/orion/gpu018?side=both").status_code == 422


def test_commands_of_both_schedulers_are_offered_and_quoted() -> None:
    (slurm, drain, resume), (kubernetes, cordon, uncordon) = commands("gpu018", suspect=True)
    assert (slurm, kubernetes) == ("Slurm", "Kubernetes")
    assert drain.startswith("scontrol update NodeName=gpu018 State=DRAIN Reason='")
    assert resume == "scontrol update NodeName=gpu018 State=RESUME"
    assert (cordon, uncordon) == ("kubectl cordon gpu018", "kubectl uncordon gpu018")
    assert "jobs fail here more often than elsewhere" in drain
    assert "more often" not in commands("gpu018", suspect=False)[0][1], "a node that does not fail more often"
    assert commands("x; rm -rf /", suspect=False)[1][1] == "kubectl cordon 'x; rm -rf /'"
