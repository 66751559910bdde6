"""Kubernetes Events about a Node, and Nodes with their conditions, also in the envelope of a watch.

Which status is a problem depends on the condition (Ready: False or Unknown; node-problem-detector: True). The time of
an event is in `lastTimestamp`, else `eventTime`, else `firstTimestamp`, any of which may be null; of a repeated one
in its `series`. In events.k8s.io/v1 the fields of the former API are named `deprecated...`.
"""

from collections.abc import Mapping
from typing import Any

from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.node_records.kinds import of_text, rules

CONDITIONS_MOST = 100
_TIMES = (
    *("lastTimestamp", "deprecatedLastTimestamp", "eventTime", "firstTimestamp"),
    "deprecatedFirstTimestamp",
)


def is_it(obj: Mapping[str, Any]) -> bool:
    """Return whether the object is an Event, a Node, or the envelope of a watch around one."""
    inner = _watched(obj)
    return _plain(obj if inner is None else inner)


def _plain(obj: Mapping[str, Any]) -> bool:
    return "involvedObject" in obj or "regarding" in obj or (obj.get("kind") in ("Node", "Event") and "metadata" in obj)


def _watched(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    inner = obj.get("object")
    return inner if isinstance(inner, dict) and "type" in obj else None


def read(obj: Mapping[str, Any], cluster: str | None) -> list[Mapping[str, Any]] | Skipped:
    """Return the native node events.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    inner = _watched(obj)
    if inner is not None:
        if obj["type"] in ("BOOKMARK", "ERROR"):
            return Skipped(f"Kubernetes: a watch's {obj['type']} says nothing of a node")
        cluster = field_reading.text(obj, "cluster") or cluster
        obj = inner
    return _node(obj, cluster) if obj.get("kind") == "Node" else _event(obj, cluster)


def _event(obj: Mapping[str, Any], cluster: str | None) -> list[Mapping[str, Any]] | Skipped:
    name = "involvedObject" if "involvedObject" in obj else "regarding"
    about = field_reading.mapping(obj, name)
    if about.get("kind") != "Node":
        return Skipped(f"Kubernetes: an Event of a {about.get('kind')!s:.40} says nothing of a node")
    reason = field_reading.text(obj, "reason") or ""
    message = field_reading.text(obj, "message") or field_reading.text(obj, "note") or ""
    series = field_reading.mapping(obj, "series")
    at = series.get("lastObservedTime") or next((obj[key] for key in _TIMES if obj.get(key)), None)
    count = series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1
    metadata = field_reading.mapping(obj, "metadata")
    source_field = "source" if "source" in obj else "deprecatedSource"
    source = field_reading.mapping(obj, source_field)
    uid = field_reading.text(metadata, "uid", "metadata.")
    line = f"{reason}: {message}" if reason else message
    return [
        {
            "cluster": field_reading.text(obj, "clusterName") or cluster,
            "node": field_reading.text(about, "name", f"{name}."),
            # The same Event object is sent again each time its count increases.
            "id": f"{uid}/{count}" if uid is not None else None,
            "at": at or metadata.get("creationTimestamp"),
            "source": field_reading.text(source, "component", f"{source_field}.")
            or field_reading.text(obj, "reportingComponent")
            or field_reading.text(obj, "reportingController")
            or "kubernetes",
            "kind": of_text(line),
            "text": line,
            "severity": "warning" if obj.get("type") == "Warning" else None,
        }
    ]


def _node(obj: Mapping[str, Any], cluster: str | None) -> list[Mapping[str, Any]] | Skipped:
    metadata = field_reading.mapping(obj, "metadata")
    node = field_reading.text(metadata, "name", "metadata.")
    conditions = field_reading.mappings(field_reading.mapping(obj, "status"), "conditions", "status.")[:CONDITIONS_MOST]
    known = rules().conditions
    out: list[Mapping[str, Any]] = []
    for condition in conditions:
        kind_of = field_reading.text(condition, "type", "status.conditions.") or ""
        status = str(condition.get("status"))
        at = condition.get("lastTransitionTime") or condition.get("lastHeartbeatTime")
        if kind_of not in known or at is None:
            continue
        kind, bad = known[kind_of]
        reason = field_reading.text(condition, "reason", "status.conditions.") or ""
        message = field_reading.text(condition, "message", "status.conditions.") or ""
        over = status not in bad
        out.append(
            {
                "cluster": field_reading.text(obj, "clusterName") or cluster,
                "node": node,
                "at": at,
                "source": "kubernetes",
                "kind": "healthy" if over and kind_of == "Ready" else kind,
                "text": f"{kind_of}={status} {reason}: {message}".rstrip(": "),
                "severity": "info" if over else None,
                "resolved": over and kind_of != "Ready",
            }
        )
    if not out:
        return Skipped("Kubernetes: a Node without a condition that is known")
    return out
