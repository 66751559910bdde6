"""Places of nodes in Slurm's lines; `tests/service/nodes/test_slurm_places.py` has the lines of a real Slurm."""

import pytest

from service.errors import UnreadableRecord
from service.formats import node_events
from service.formats.field_reading import Skipped
from service.nodes.records import NodePlace, NodeReport


def places(line: str, cluster: str | None = "orion") -> dict[str, NodePlace] | str:
    found = node_events.parse(line.encode(), cluster=cluster)
    if isinstance(found, Skipped):
        return found.reason
    assert isinstance(found, NodeReport)
    assert not found.events
    assert {one.cluster for one in found.places} == {"orion"}
    return {one.node: one.place for one in found.places}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[1-2]", NodePlace(switch="leaf1")),
        ("SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[1-2] ", NodePlace(switch="leaf1")),
        ("BlockName=b1 BlockIndex=0 Nodes=gpu[1-2] BlockSize=2", NodePlace(block="b1")),
        ("BlockName=b1 BlockIndex=0 Nodes=gpu[1-2]", NodePlace(block="b1")),
    ],
)
def test_a_leaf_switch_and_a_block_are_the_place_of_their_nodes(line: str, expected: NodePlace) -> None:
    assert places(line) == {"gpu1": expected, "gpu2": expected}


@pytest.mark.parametrize(
    "line",
    [
        "SwitchName=spine Level=1 LinkSpeed=1 Nodes=gpu[1-4] Switches=leaf[1-2]",
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=gpu[1-4] BlockSize=4",
        "SwitchName=unused Level=0 LinkSpeed=1",
        "NodeName=gpu1 AvailableFeatures=(null)",
        "NodeName=gpu1 AvailableFeatures=h100,racked,switchless,tracker7",
        "NodeName=gpu1 Arch=x86_64",
        "SwitchName= Level=0 LinkSpeed=1 Nodes=gpu[1-2]",
        "SwitchName=\0leaf1 Level=0 LinkSpeed=1 Nodes=gpu[1-2]",
        "BlockName=",
    ],
)
def test_a_switch_of_switches_and_features_of_other_meaning_name_no_place(line: str) -> None:
    assert isinstance(places(line), str)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("h100,rack7", NodePlace(rack="7")),
        ("rack-a12,rack9", NodePlace(rack="a12")),
        ("Rack=r1,leaf_3", NodePlace(rack="r1", switch="3")),
        ("switch:ib-04", NodePlace(switch="ib-04")),
    ],
)
def test_features_of_a_node_name_its_rack_and_its_switch(features: str, expected: NodePlace) -> None:
    words = "OS=Linux 6.12 #1 SMP NodeName=none"  # text of a node, not its name
    assert places(f"NodeName=gpu1 Arch=x86_64 AvailableFeatures={features} ActiveFeatures=rack0 {words}") == {
        "gpu1": expected
    }


@pytest.mark.parametrize(
    ("line", "cluster", "field"),
    [
        ("SwitchName=leaf1 Level=0 Nodes=gpu[1-2]", None, "cluster"),
        ("SwitchName", "orion", "(whole record)"),
        ("SwitchName=leaf1 Level=0 Nodes=gpu[1-", "orion", "Nodes"),
        ("SwitchName=leaf1 Level=0 Nodes=gpu[1-5001]", "orion", "Nodes"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused_with_its_field(line: str, cluster: str | None, field: str) -> None:
    with pytest.raises(UnreadableRecord) as error:
        places(line, cluster)
    assert error.value.errors[0].field == field
