"""Changes reported as node events: stored, and shown on the pages and verdicts of failures that end within a day."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from classifiers.contracts import LogStream
from service.contracts.event import JobCompletion
from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from service.pipeline.classification import case_of, known_before
from tests.classifiers.packaged_catalogue import EXTRACTOR
from tests.service.web.world import NOW, World, event, lines, log, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path)


def change(**given: Any) -> dict[str, Any]:
    at = (NOW - timedelta(hours=3)).isoformat()
    return {"cluster": "orion", "source": "change", "at": at, "text": "driver 580 to 590"} | given


def failure_of(world: World, **facts: Any) -> dict[str, Any]:
    client = world.client()
    client.post("/api/v1/events", content=lines(event("1", logs=[log("KeyError: 'y'")], **facts)))
    [row] = client.get("/api/v1/failures").json()["items"]
    found: dict[str, Any] = client.get(f"/api/v1/failures/{row['id']}").json()
    return found | {"page": client.get(f"/failures/{row['id']}").text}


def changes_in(found: dict[str, Any]) -> list[str]:
    return [line["text"] for line in found["verdict"]["evidence"] if line["stream"] == "change"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"node": "gpu001"}, True),
        ({"nodes": ["gpu009", "gpu001"]}, True),
        ({}, True),
        ({"node": "gpu009"}, False),
        ({"cluster": "lyra"}, False),
        ({"at": (NOW - timedelta(days=3)).isoformat()}, False),
    ],
)
def test_changes_of_the_day_before_are_on_the_failure(world: World, given: dict[str, Any], *, shown: bool) -> None:
    answer = world.client().post("/api/v1/node-events", json=change(**given)).json()
    assert answer["rejected"] == []
    found = failure_of(world, nodes=["gpu001"])
    assert ("Changed shortly before" in found["page"]) is shown
    assert changes_in(found) == (["driver 580 to 590"] if shown else [])


def test_a_change_with_serious_words_changes_no_verdict(world: World, tmp_path: Path) -> None:
    serious = change(node="gpu001", text="NVRM: Xid 79, GPU has fallen off the bus", kind="gpu_lost", severity="fatal")
    world.client().post("/api/v1/node-events", json=serious)
    found = failure_of(world, nodes=["gpu001"])
    (tmp_path / "other").mkdir()
    other = failure_of(make_world(tmp_path / "other"), nodes=["gpu001"])
    for name in ("side", "cause", "confidence", "context", "decision", "suspect"):
        assert found["verdict"].get(name) == other["verdict"].get(name)
    assert changes_in(found) == ["NVRM: Xid 79, GPU has fallen off the bus"]


@pytest.mark.parametrize("where", [{"node": "gpu001"}, {}])
def test_the_classifier_is_given_the_changes(world: World, where: dict[str, Any]) -> None:
    world.client().post("/api/v1/node-events", json=change(text="module GCC/11.3.0 removed", **where))
    ended = JobCompletion.model_validate(event("1", nodes=["gpu001"]))
    [known] = known_before(world.store, [ended])
    case = case_of(ended, [LogStream('The following module(s) are unknown: "GCC/11.3.0"')], known)
    [given] = case.node_events
    assert (given.text, given.node, given.source) == ("module GCC/11.3.0 removed", where.get("node"), "change")
    extracted = EXTRACTOR.extract(case)
    assert extracted.items[0].text == "module GCC/11.3.0 removed"


def test_a_change_is_on_the_page_of_its_node(world: World) -> None:
    failure_of(world, nodes=["gpu001"])
    world.client().post("/api/v1/node-events", json=change(node="gpu001"))
    NodeStatisticsUpdater(world.store, world.clock, FleetSettings())()
    page = world.client().get("/nodes/orion/gpu001").text
    assert "driver 580 to 590" in page
    assert "Changed" in page
