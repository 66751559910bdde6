"""The map of nodes shows the switches, blocks and racks of a real Slurm, sent as its administrator sends them."""

from pathlib import Path

import pytest

from service.nodes.records import FleetSettings
from service.nodes.statistics_updater import NodeStatisticsUpdater
from tests.labs import slurm
from tests.service.web.world import World, event, lines, make_world

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]  # a machine runs one cluster at a time

TREE = slurm.Topology(
    "topology/tree",
    "SwitchName=leaf1 Nodes=gpu[1-2]\nSwitchName=leaf2 Nodes=gpu[3-4]\nSwitchName=spine Switches=leaf[1-2]\n",
)
BLOCK = slurm.Topology("topology/block", "BlockName=nv1 Nodes=gpu[1-2]\nBlockName=nv2 Nodes=gpu[3-4]\nBlockSizes=2,4\n")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A service that knows a job on each node."""
    made = make_world(tmp_path)
    done = event("1", cluster="lab", status="succeeded", nodes=list(slurm.NODES), logs=[])
    assert made.client().post("/api/v1/events", content=lines(done)).json()["accepted"] == 1
    NodeStatisticsUpdater(made.store, made.clock, FleetSettings())()
    return made


def send(world: World, text: str) -> tuple[int, int, int]:
    """Send lines of Slurm to the intake of node events: how many were accepted, known and skipped."""
    answer = world.client().post(
        "/api/v1/node-events?cluster=lab", content=text.encode(), headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["rejected"] == []
    return body["accepted"], body["duplicates"], body["skipped"]


def headings(world: World) -> dict[str, str]:
    """The heading of each node on the map."""
    page = world.client().get("/nodes").text
    found: dict[str, str] = {}
    for part in page.split("<h4>")[1:]:
        title, _, rest = part.partition("</h4>")
        cells = rest.partition("</ul>")[0]
        found |= {node: title for node in slurm.NODES if f"/nodes/lab/{node}" in cells}
    return found


def test_the_switches_of_the_tree_plugin_group_the_map_and_racks_of_features_come_before_them(world: World) -> None:
    features = {"gpu1": "h100,rack7", "gpu2": "h100,rack8", "gpu3": "h100,rack8", "gpu4": "h100"}
    with slurm.cluster("127.0.0.1:1", "none", topology=TREE, features=features) as running:
        topology = running.run("scontrol", "show", "topology")
        nodes = running.run("scontrol", "show", "node", "-o")
        short = running.run("sinfo", "-h", "-N", "-o", "NodeName=%N AvailableFeatures=%f")
    assert send(world, topology) == (4, 0, 1)
    assert headings(world) == {
        "gpu1": "switch leaf1",
        "gpu2": "switch leaf1",
        "gpu3": "switch leaf2",
        "gpu4": "switch leaf2",
    }
    assert send(world, nodes) == (3, 0, 1)
    assert headings(world) == {"gpu1": "rack 7", "gpu2": "rack 8", "gpu3": "rack 8", "gpu4": "rack not known"}
    assert "rack 7 · switch leaf1" in world.client().get("/nodes/lab/gpu1").text
    assert send(world, topology + short) == (0, 4, 2)


def test_the_blocks_of_the_block_plugin_group_the_map(world: World) -> None:
    with slurm.cluster("127.0.0.1:1", "none", topology=BLOCK) as running:
        topology = running.run("scontrol", "show", "topology")
    assert send(world, topology) == (4, 0, 1)
    assert headings(world) == {"gpu1": "block nv1", "gpu2": "block nv1", "gpu3": "block nv2", "gpu4": "block nv2"}
    items = world.client().get("/api/v1/nodes").json()["items"]
    assert {one["node"]: one["block"] for one in items} == {
        "gpu1": "nv1",
        "gpu2": "nv1",
        "gpu3": "nv2",
        "gpu4": "nv2",
    }


def test_a_slurm_without_topology_sends_nothing_and_changes_nothing(world: World) -> None:
    with slurm.cluster("127.0.0.1:1", "none") as running:
        text = running.run("scontrol", "show", "topology") + running.run("scontrol", "show", "node", "-o")
    assert send(world, text) == (0, 0, 4)
    assert headings(world) == {}
