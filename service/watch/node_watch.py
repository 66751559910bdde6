"""Tracks the cluster's nodes: which ones are lost, and their conditions and Events as lines of evidence."""

import logging
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from classifiers.redaction import redact
from service.contracts.event import NodeEventIn
from service.errors import FaultlineError, UnreadableRecord
from service.formats import field_reading

log = logging.getLogger(__name__)

# Deleted nodes are remembered, since pods may still end because of them.
GONE_FOR = timedelta(hours=1)
GONE_MOST = 1_000
LOST_TAINTS = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service"})
# Conditions of such names indicate no problem when True: Ready, and AcceleratedHardwareReady that EKS adds.
GOOD_WHEN_TRUE = "Ready"


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """A node condition that indicates a problem."""

    kind: str
    reason: str
    message: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Node:
    """One node.

    `lost`: its kubelet no longer answers, or an administrator has declared it out of service. `place`: rack, switch,
    zone and block, as far as its labels name them.
    """

    name: str
    lost: bool
    problems: tuple[NodeProblem, ...] = ()
    gone_at: datetime | None = None
    place: Mapping[str, str] = field(default_factory=dict)


def read(obj: Mapping[str, Any]) -> Node:
    """Parse a Node object.

    Raises:
        UnreadableRecord: a field is invalid; the error names it.
    """
    meta, status = field_reading.mapping(obj, "metadata"), field_reading.mapping(obj, "status")
    name = field_reading.text(meta, "name", "metadata.")
    if name is None:
        raise field_reading.unreadable("metadata.name", "a string")
    taints = {
        taint.get("key") for taint in field_reading.mappings(field_reading.mapping(obj, "spec"), "taints", "spec.")
    }
    problems, ready = [], "Unknown"
    for entry in field_reading.mappings(status, "conditions", "status."):
        kind, state = field_reading.text(entry, "type") or "", str(entry.get("status"))
        if kind == "Ready":
            ready = state
        if (state == "True") == kind.endswith(GOOD_WHEN_TRUE) or (state == "Unknown" and kind != "Ready"):
            continue
        problems.append(
            NodeProblem(
                kind,
                field_reading.text(entry, "reason") or "",
                field_reading.text(entry, "message") or "",
                field_reading.instant(entry, "lastTransitionTime"),
            )
        )
    return Node(name, ready == "Unknown" or not LOST_TAINTS.isdisjoint(taints), tuple(problems), place=_place(meta))


@cache
def _place_labels() -> tuple[tuple[str, str], ...]:
    """The key of each label that names a place, and the kind of place."""
    raw = tomllib.loads(files("service.watch").joinpath("topology_labels.toml").read_text(encoding="utf-8"))
    return tuple((row["key"], row["of"]) for row in raw["label"])


def _place(meta: Mapping[str, Any]) -> dict[str, str]:
    labels = meta.get("labels")
    found: dict[str, str] = {}
    for key, kind in _place_labels():
        value = labels.get(key) if isinstance(labels, Mapping) else None
        if isinstance(value, str) and value:
            found.setdefault(kind, value)
    return found


class NodeStates:
    """Every node by name; deleted nodes are kept for a while, as lost."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def put(self, obj: Mapping[str, Any], now: datetime) -> tuple[Node | None, Node | None]:
        """Store the current state of a node; return the states before and after."""
        del now
        try:
            node = read(obj)
        except UnreadableRecord as error:
            log.warning("a node can't be read: %s", error.reason)
            return None, None
        before = self._nodes.get(node.name)
        self._nodes[node.name] = node
        return before, node

    def gone(self, name: str, now: datetime) -> None:
        """Handle the deletion of a node."""
        known = self._nodes.pop(name, None)
        problems, place = (known.problems, known.place) if known else ((), {})
        self._nodes[name] = Node(name, lost=True, problems=problems, gone_at=now, place=place)
        old = [one.name for one in self._nodes.values() if one.gone_at is not None and one.gone_at < now - GONE_FOR]
        many = [one.name for one in self._nodes.values() if one.gone_at is not None]
        for stale in (*old, *many[: max(0, len(many) - GONE_MOST)]):
            self._nodes.pop(stale, None)

    def lost(self, name: str) -> bool:
        """Return whether a node is known to be lost."""
        node = self._nodes.get(name)
        return node is not None and node.lost

    def topology(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Rack, switch, zone and block of these nodes, as far as their labels name them."""
        found = {name: self._nodes.get(name) for name in names}
        return {name: dict(node.place) for name, node in found.items() if node is not None and node.place}

    def silent(self, name: str) -> str | None:
        """Return the reason not to query a node's kubelet; None: it may answer."""
        node = self._nodes.get(name)
        if node is None or not node.lost:
            return None
        return f"node {name} is gone" if node.gone_at is not None else f"node {name} does not answer"

    def lines(self, name: str) -> list[NodeEventIn]:
        """Return the current problems of a node as lines of evidence."""
        node = self._nodes.get(name)
        if node is None:
            return []
        found = [line(name, one) for one in node.problems]
        if node.gone_at is not None:
            text = "the node was deleted from the cluster"
            found.append(NodeEventIn(at=node.gone_at, node=name, source="kubernetes", text=text))
        return found


def line(node: str, one: NodeProblem) -> NodeEventIn:
    """Return a condition as a line of evidence."""
    reason = one.reason if one.kind in {"Ready", one.reason} else f"{one.kind}: {one.reason}"
    return NodeEventIn(at=one.at, node=node, source="kubernetes", text=f"{reason}: {one.message}")


def observed(obj: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """Return a Node or an Event in the form that the service accepts, reduced to the fields about the node's state."""
    meta, status = field_reading.mapping(obj, "metadata"), field_reading.mapping(obj, "status")
    metadata = {name: meta.get(name) for name in ("name", "namespace", "uid", "creationTimestamp") if name in meta}
    if obj.get("kind") == "Node":
        conditions = {"conditions": status.get("conditions") or []}
        return {"kind": "Node", "clusterName": cluster, "metadata": metadata, "status": conditions}
    return {**obj, "kind": "Event", "clusterName": cluster, "metadata": metadata}


def removed(name: str, cluster: str, at: datetime) -> dict[str, Any]:
    """Return a node's deletion in the form that the service accepts."""
    text = "the node was deleted from the cluster"
    return {"cluster": cluster, "node": name, "at": at.isoformat(), "source": "kubernetes", "text": text}


def event_line(obj: Mapping[str, Any], node: str | None = None) -> NodeEventIn | None:
    """Return an Event of the cluster (about a node or a pod) as a line of evidence; None: it has no content.

    The time is `lastTimestamp`, else `eventTime`, else `firstTimestamp`: any of them may be null.
    """
    about = obj.get("involvedObject")
    about = about if isinstance(about, dict) else {}
    reason, message = obj.get("reason"), obj.get("message")
    if not isinstance(reason, str) or not isinstance(message, str):
        return None
    at = None
    for key in ("lastTimestamp", "eventTime", "firstTimestamp"):
        try:
            at = at or field_reading.instant(obj, key)
        except FaultlineError:
            continue
    source = obj.get("source")
    component = (source.get("component") if isinstance(source, dict) else None) or obj.get("reportingComponent")
    where = node or (about.get("name") if about.get("kind") == "Node" else None)
    what = "" if about.get("kind") == "Node" else f"{about.get('kind')} {about.get('name')}: "
    return NodeEventIn(
        at=at.astimezone(UTC) if at else None,
        node=where if isinstance(where, str) else None,
        source=component if isinstance(component, str) else "kubernetes",
        text=redact(f"{what}{reason}: {message}")[:2_000],
    )
