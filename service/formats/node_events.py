"""Parses records of node events: bytes of any known format to `NewNodeEvent`.

Formats: node-event/1, CloudEvents with any of these, Kubernetes Events and Nodes, DCGM health and policy violations,
kernel lines as in JSON of journald, in syslog or in dmesg, Slurm's lines about its topology and its topology.yaml. One
record may hold several events (a maintenance of many nodes, a node with several conditions).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from classifiers.fleet_evidence import evidence_weights
from classifiers.fleet_evidence.evidence_weights import Severity
from classifiers.redaction import redact
from service.contracts.event import as_unreadable
from service.contracts.node_event import NodeEvent
from service.errors import FieldError, UnreadableRecord
from service.formats import cloud_event, field_reading
from service.formats.field_reading import Skipped
from service.formats.node_records import dcgm, kernel, kubernetes
from service.formats.node_records.kinds import gpu_in, of_text
from service.formats.slurm import topology, topology_file
from service.nodes.records import TEXT_MOST, NewNodeEvent, NodeReport

RECORD_MOST = 1024 * 1024  # bytes
_BEGINNING = 64 * 1024  # bytes; comments may come first
_DEEPEST = 4


def parse(
    value: bytes | None, headers: Sequence[tuple[str, bytes]] = (), *, cluster: str | None = None
) -> NodeReport | Skipped:
    """Parse one record of a topic or a request.

    Args:
        value: JSON, a kernel line as plain text, or a topology.yaml; at most 1 MiB. None is a tombstone of a topic.
        headers: Kafka or HTTP headers; used for CloudEvents only.
        cluster: the cluster name for records without one.

    Raises:
        UnreadableRecord: a field is wrong; the error names it and the expected value. No other exception.
    """
    if value is None:
        return Skipped("no value (a topic's deletion marker)")
    if len(value) > RECORD_MOST:
        expected = f"at most {RECORD_MOST} bytes"
        raise UnreadableRecord(
            f"(whole record): {expected}", (FieldError("(whole record)", expected, f"{len(value)} bytes"),)
        )
    obj = _decode(value)
    if headers and cloud_event.is_structured(headers):
        if not isinstance(obj, dict):
            raise field_reading.unreadable("(whole object)", "a CloudEvent", obj)
        return _read(obj, cluster, 0)
    attributes = cloud_event.binary_attributes(headers) if headers else None
    return _read(obj, cluster, 0 if attributes is None else 1, attributes)


def is_whole(body: bytes) -> bool:
    """Return whether a body of many lines is one record that is not JSON."""
    return topology_file.is_it(body[:_BEGINNING].decode("utf-8", "replace"))


def _decode(value: bytes) -> Any:
    """Decode JSON; what is not JSON is returned as text, without space around it: a line, or a whole topology.yaml."""
    stripped = value.strip()
    if not stripped.startswith((b"{", b"[", b'"')):
        try:
            return (value if is_whole(value) else stripped).decode()
        except UnicodeDecodeError:
            raise field_reading.unreadable("(whole record)", "JSON, or a line in UTF-8") from None
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError as error:
        if stripped.startswith(b"[") and b"\n" not in stripped:  # dmesg lines begin with [ 123.456]
            return stripped.decode("utf-8", "replace")
        raise UnreadableRecord(f"not JSON: {error}", (FieldError("(whole record)", f"JSON: {error}"),)) from None


def _read(obj: Any, cluster: str | None, depth: int, envelope: Mapping[str, Any] | None = None) -> NodeReport | Skipped:
    if isinstance(obj, bytes):
        obj = _decode(obj)
    if isinstance(obj, str):
        for places in (topology, topology_file):
            if places.is_it(obj):
                found_places = places.read(obj, cluster)
                return found_places if isinstance(found_places, Skipped) else NodeReport((), found_places)
        return _report([kernel.line(obj, cluster)], envelope)
    if not isinstance(obj, dict):
        raise field_reading.unreadable("(whole object)", _EXPECTED, obj)
    if "specversion" in obj and "schema" not in obj:
        if depth >= _DEEPEST:
            raise field_reading.unreadable("data", f"at most {_DEEPEST} envelopes around an event")
        return _read(cloud_event.structured_data(obj), cluster, depth + 1, obj)
    for is_it, read in _FORMATS:
        if is_it(obj):
            found = read(obj, cluster)
            return found if isinstance(found, Skipped) else _report(found, envelope)
    return _report([obj], envelope, cluster)


def _report(
    objects: Sequence[Mapping[str, Any]], envelope: Mapping[str, Any] | None, cluster: str | None = None
) -> NodeReport:
    """Return the events of native objects; missing names and times are taken from the envelope."""
    events: list[NewNodeEvent] = []
    for number, given in enumerate(objects):
        obj = {name: value for name, value in given.items() if value is not None}
        if cluster is not None:
            obj.setdefault("cluster", cluster)
        if envelope is not None:
            identity = f"{envelope.get('source')}\0{envelope.get('id')}"
            obj.setdefault("id", hashlib.sha256(f"{identity}\0{number}".encode("utf-8", "replace")).hexdigest())
            if "at" not in obj and "start" not in obj and envelope.get("time") is not None:
                obj["at"] = envelope["time"]
        try:
            events.extend(_new_events(NodeEvent.model_validate(obj)))
        except ValidationError as error:
            raise as_unreadable(error) from None
    return NodeReport(tuple(events))


def _new_events(event: NodeEvent) -> list[NewNodeEvent]:
    text = _clean(event.text)
    kind = event.kind or of_text(text)
    severity: Severity = event.severity or evidence_weights.load().kinds[kind].severity
    assert severity in get_args(Severity)
    source = None if event.source is None else _clean(event.source)[:60]
    gpu = event.gpu if event.gpu is not None else gpu_in(text, event.names())
    out = []
    for node in event.names():
        what: list[Any] = [event.cluster, node]
        if event.id is not None:
            what.append(event.id)
        else:
            until = None if event.until is None else event.until.isoformat()
            what += [event.at.isoformat(), until, source, kind, severity, gpu, event.resolved, text]
        key = hashlib.blake2b(orjson.dumps(what), digest_size=16).digest()
        out.append(
            NewNodeEvent(
                key=key,
                cluster=event.cluster,
                node=node,
                at=event.at,
                until=event.until,
                source=source,
                kind=kind,
                severity=severity,
                gpu=gpu,
                resolved=event.resolved,
                text=text,
            )
        )
    return out


def _clean(text: str) -> str:
    """Redact and shorten a text; the limit before redaction is larger, so that no part of a secret remains."""
    whole = text[: 4 * TEXT_MOST].encode("utf-8", "replace").decode("utf-8")
    return redact(whole)[:TEXT_MOST]


_EXPECTED = (
    "a node-event/1 object, a CloudEvent, a Kubernetes Event of a Node, a Kubernetes Node, DCGM's health or policy "
    "violation, journald's JSON, a kernel's line, a line of Slurm's topology, or Slurm's topology.yaml"
)
_FORMATS: tuple[
    tuple[
        Callable[[Mapping[str, Any]], bool],
        Callable[[Mapping[str, Any], str | None], Sequence[Mapping[str, Any]] | Skipped],
    ],
    ...,
] = (
    (lambda obj: "schema" in obj, lambda obj, cluster: [{"cluster": cluster, **obj}]),
    (kubernetes.is_it, kubernetes.read),
    (dcgm.is_it, dcgm.read),
    (kernel.is_it, kernel.read),
)
