"""Places of nodes in Slurm's topology.yaml."""

from pathlib import Path

import pytest

from service.errors import UnreadableRecord
from service.formats import node_events
from service.formats.field_reading import Skipped
from service.nodes.records import NodePlace, NodeReport

DATA = Path(__file__).parents[2] / "data" / "formats"
ONE_TREE = "- topology: fabric\n  tree:\n    switches:\n    - switch: leaf1\n      nodes: {nodes}\n"


def places(text: str | bytes, cluster: str | None = "orion") -> dict[str, NodePlace]:
    """The place of each node; empty for a file that names none."""
    found = node_events.parse(text if isinstance(text, bytes) else text.encode(), cluster=cluster)
    if isinstance(found, Skipped):
        return {}
    assert isinstance(found, NodeReport)
    assert not found.events
    assert {one.cluster for one in found.places} == {"orion"}
    return {one.node: one.place for one in found.places}


def test_leaf_switches_and_blocks_of_all_topologies_are_the_places_of_their_nodes() -> None:
    found = places((DATA / "slurm-topology.yaml").read_bytes())
    assert len(found) == 14
    assert found["gpu01"] == NodePlace(switch="leaf1", block="nvl1")
    assert found["gpu09"] == NodePlace(switch="leaf3", block="nvl2")
    assert found["gpu12"] == NodePlace(switch="leaf3")
    assert found["login7"] == NodePlace(switch="edge")


def test_the_default_topology_names_the_switch_where_two_do() -> None:
    text = (
        "- topology: old\n  cluster_default: {old}\n  tree: {{switches: [{{switch: a1, nodes: 'gpu[1-3]'}}]}}\n"
        "- topology: new\n  cluster_default: {new}\n  tree: {{switches: [{{switch: b1, nodes: 'gpu[1-2]'}}]}}\n"
    )
    of_new = {"gpu1": NodePlace(switch="b1"), "gpu2": NodePlace(switch="b1"), "gpu3": NodePlace(switch="a1")}
    of_old = dict.fromkeys(of_new, NodePlace(switch="a1"))
    assert places(text.format(old="false", new="True")) == of_new
    assert places(text.format(old="True", new="True")) == of_old
    assert places(text.format(old="~", new="")) == of_old


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("gpu[001-003,007]", {"gpu001", "gpu002", "gpu003", "gpu007"}),
        ('"r[1-2]n[1-2]"', {"r1n1", "r1n2", "r2n1", "r2n2"}),
        ("007", {"007"}),
        ("[gpu1, gpu3]", {"gpu1", "gpu3"}),
        ("~", set()),
        ("", set()),
    ],
)
def test_host_lists_are_expanded_and_names_of_digits_stay_as_written(nodes: str, expected: set[str]) -> None:
    assert places(ONE_TREE.format(nodes=nodes)) == dict.fromkeys(expected, NodePlace(switch="leaf1"))


@pytest.mark.parametrize(
    "text",
    [
        "- topology: plain\n  flat: true\n",
        "- topology: plain\n  ring: {rings: [{ring: r1, nodes: gpu1}]}\n",
        "- topology: plain\n  tree: {switches: }\n",
        "# from 25.05 on\n---\n- topology: plain\n  tree: {switches: [{switch: spine, children: 'leaf[1-2]'}]}\n",
    ],
)
def test_a_flat_topology_and_switches_of_switches_name_no_place(text: str) -> None:
    assert places(text) == {}


@pytest.mark.parametrize(
    ("text", "field", "expected"),
    [
        (ONE_TREE.format(nodes="gpu[1-"), "topology.yaml, line 5: [0].tree.switches[0].nodes", "hostlist"),
        (ONE_TREE.format(nodes='"gpu[1-"'), "topology.yaml, line 5: [0].tree.switches[0].nodes", "hostlist"),
        ("\n\n" + ONE_TREE.format(nodes='"gpu[1-"'), "topology.yaml, line 7: [0].tree.switches[0].nodes", "hostlist"),
        (ONE_TREE.format(nodes="{a: b}"), "topology.yaml, line 5: [0].tree.switches[0].nodes", "a text"),
        (ONE_TREE.format(nodes="[[a]]"), "topology.yaml, line 5: [0].tree.switches[0].nodes[0]", "a text"),
        ("- topology: a\n  tree: leaf1\n", "topology.yaml, line 2: [0].tree", "a mapping"),
        ("- topology: a\n  block:\n    blocks: {b1: n1}\n", "topology.yaml, line 3: [0].block.blocks", "a list"),
        ("- topology: a\n- flat\n", "topology.yaml, line 2: [1]", "a mapping"),
        (
            "- topology: a\n  block:\n    blocks:\n    - nodes: n1\n",
            "topology.yaml, line 4: [0].block.blocks[0]",
            "the key block",
        ),
        ("- topology: a\n  tree: {}\n  tree: {}\n", "topology.yaml, line 3: [0]", "keys that are texts and differ"),
        ("- topology: a\n---\n- topology: b\n", "topology.yaml, line 2", "one document"),
        ("- topology: &a x\n  tree: *a\n", "topology.yaml, line 2: [0].tree", "no alias"),
        ("- topology: a\n  tree: " + "[" * 5_000, "topology.yaml, line 2", "at most 10 levels"),
        ("- topology: a\n tree: 1\n", "topology.yaml, line 2", "YAML"),
        ("- topology: a\n  tree: \x07\n", "topology.yaml, line 1", "YAML"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line_and_keys(text: str, field: str, expected: str) -> None:
    with pytest.raises(UnreadableRecord) as error:
        places(text)
    assert error.value.errors[0].field.startswith(field.partition(": [")[0] if expected == "YAML" else field)
    assert expected in error.value.errors[0].expected


def test_a_file_without_a_cluster_and_one_with_too_many_nodes_are_refused() -> None:
    with pytest.raises(UnreadableRecord) as error:
        places(ONE_TREE.format(nodes="gpu1"), cluster=None)
    assert error.value.errors[0].field == "cluster"
    assert len(places(ONE_TREE.format(nodes='"n[1-100000]"'))) == 100_000
    many = ONE_TREE.format(nodes='"n[1-60000]"')
    with pytest.raises(UnreadableRecord) as error:
        places(many + many)
    assert error.value.errors[0].field == "topology.yaml, line 10: [1].tree.switches[0].nodes"
    assert "100000 nodes" in error.value.errors[0].expected
    with pytest.raises(UnreadableRecord) as error:
        places(ONE_TREE.format(nodes="gpu1") + "#" * node_events.RECORD_MOST)
    assert "at most 1048576 bytes" in error.value.errors[0].expected
