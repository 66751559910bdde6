"""Where nodes are: lines of `scontrol show topology`, and features of nodes from `scontrol show node -o` or `sinfo`.

Lines of the plugins (measured on Slurm 24.11; earlier ones lack BlockSize):
topology/tree: `SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[1-2]`, and with `Switches=` for switches above others.
topology/block: `BlockName=b1 BlockIndex=0 Nodes=gpu[1-2] BlockSize=2`, and `AggregatedBlock=` for several blocks.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from classifiers.redaction import redact
from service.contracts.node_event import NODES_MOST
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.slurm.nodes import expand_nodes
from service.nodes.records import NODE_NAME_MOST, PLACE_NAME_MOST, KnownPlace, NodePlace

_KINDS = {"SwitchName": "switch", "BlockName": "block", "AggregatedBlock": None, "NodeName": None}
_FIELD = re.compile(r"(?:^|\s)(\w+)=([^\s\x00-\x1f\x7f\ufffd]*)")
_NONE = frozenset({"", "(null)"})


def is_it(line: str) -> bool:
    """Return whether this is such a line."""
    name, equals, _ = line.partition("=")
    return equals == "=" and name in _KINDS


def read(line: str, cluster: str | None) -> tuple[KnownPlace, ...] | Skipped:
    """Return the places that a line names; `Skipped` if it names none.

    Raises:
        UnreadableRecord: no cluster is known, or the list of nodes can't be read or names more than 5,000.
    """
    fields = dict(reversed(_FIELD.findall(line)))  # the first field of a name counts
    place, listed = _of_node(fields) if line.startswith("NodeName=") else _of_group(line, fields)
    nodes = tuple(node for node in listed if 0 < len(node) <= NODE_NAME_MOST)
    if place is None or not nodes:
        return Skipped("Slurm: a line that names no place of a node")
    if len(nodes) > NODES_MOST:
        raise field_reading.unreadable("Nodes", f"at most {NODES_MOST} nodes", fields.get("Nodes"))
    named = field_reading.cluster_name(None, cluster)
    return tuple(KnownPlace(named, node, place) for node in nodes)


def _of_group(line: str, fields: Mapping[str, str]) -> tuple[NodePlace | None, tuple[str, ...]]:
    """The place that a line of the topology is, with its nodes; None for switches and blocks of several groups."""
    name = line.partition("=")[0]
    kind = _KINDS[name]
    if kind is None or not fields[name] or "Switches" in fields:
        return None, ()
    return NodePlace(**{kind: _name(fields[name])}), expand_nodes(fields.get("Nodes"), "Nodes")


def _of_node(fields: Mapping[str, str]) -> tuple[NodePlace | None, tuple[str, ...]]:
    """The place that the features of a node name, with the node."""
    text = fields.get("AvailableFeatures", "")
    found: dict[str, str] = {}
    for feature in () if text in _NONE else text.split(","):
        for kind, pattern in _feature_patterns():
            match = pattern.fullmatch(feature)
            if match is not None:
                found.setdefault(kind, _name(match[1]))
    return (NodePlace(**found) if found else None), (fields["NodeName"],)


@cache
def _feature_patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    raw = tomllib.loads(files("service.formats.slurm").joinpath("place_features.toml").read_text(encoding="utf-8"))
    return tuple((row["of"], re.compile(row["pattern"], re.ASCII | re.IGNORECASE)) for row in raw["feature"])


def _name(text: str) -> str:
    return redact(text)[:PLACE_NAME_MOST]
