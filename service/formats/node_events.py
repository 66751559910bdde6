"""node-event/1: one thing a node, its devices or its agents said, or people do to it; and bytes of any known form → it.

Native events, CloudEvents around any of these, Kubernetes Events and Nodes, DCGM health and policy violations, kernel
lines as journald's JSON, as syslog or as dmesg prints them. One record may hold several events (a maintenance of many
nodes, a node with several conditions).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from classifiers.redaction import redact
from classifiers.relevance import evidence_weights
from classifiers.relevance.evidence_weights import Severity
from service.contracts.event import Instant, Key, as_unreadable
from service.errors import FieldError, UnreadableRecord
from service.formats import cloud_event, field_reading, node_events_dcgm, node_events_kernel, node_events_kubernetes
from service.formats.node_events_kinds import gpu_in, of_text
from service.formats.read_outcome import Skipped

SCHEMA: Literal["node-event/1"] = "node-event/1"
TEXT_MOST = 2_000  # characters kept
RECORD_MOST = 1024 * 1024  # bytes
NODES_MOST = 5_000  # of one maintenance
_DEEPEST = 4
Text = Annotated[str, Field(max_length=200_000)]


class NodeEvent(BaseModel):
    """node-event/1. `node` or `nodes` is required; without `kind` it is told by the text, else "other".

    `until` (or `start` and `end`) makes a window of it, as a maintenance has. `resolved`: the state is over.
    """

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    schema_: Annotated[Literal["node-event/1"], Field(alias="schema")] = SCHEMA
    id: Key | None = Field(default=None, description="given twice, the event is stored once")
    cluster: Key
    node: Key | None = None
    nodes: tuple[Key, ...] = Field(default=(), max_length=NODES_MOST)
    at: Instant = Field(description="when it was; `start` is another name")
    until: Instant | None = Field(default=None, description="the end of a window; `end` is another name")
    source: Annotated[str, Field(max_length=200)] | None = Field(default=None, description="kernel, dcgm, kubelet ...")
    kind: str | None = None
    text: Text = ""
    severity: Severity | None = Field(default=None, description="default: that of the kind")
    gpu: Annotated[int, Field(ge=0, le=1_023, strict=True)] | None = Field(default=None, description="device index")
    resolved: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        out = dict(value)
        for name, other in (("at", "start"), ("until", "end"), ("text", "message")):
            if out.get(name) is None and out.get(other) is not None:
                out[name] = out.pop(other)
        if isinstance(out.get("nodes"), list) and len(out["nodes"]) > NODES_MOST:
            raise ValueError(f"at most {NODES_MOST} nodes")
        return out

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str | None) -> str | None:
        known = evidence_weights.load().kinds
        if value is not None and value not in known:
            raise ValueError(f"one of {', '.join(known)}")
        return value

    @field_validator("text", mode="before")
    @classmethod
    def _no_text(cls, value: Any) -> Any:
        return "" if value is None else value

    @field_validator("nodes", mode="before")
    @classmethod
    def _no_nodes(cls, value: Any) -> Any:
        return () if value is None else value

    @model_validator(mode="after")
    def _whole(self) -> "NodeEvent":
        if self.node is None and not self.nodes:
            raise ValueError("node: the node's name, or nodes: a list of them")
        if self.until is not None and self.until < self.at:
            raise ValueError("until: not before at")
        return self

    def names(self) -> tuple[str, ...]:
        """Every node it is about, once each."""
        return tuple(dict.fromkeys((*((self.node,) if self.node is not None else ()), *self.nodes)))


@dataclass(frozen=True, slots=True)
class NodeStatement:
    """One event of one node, ready to be stored: kind and severity told, text redacted and cut, `key` its identity."""

    key: bytes
    cluster: str
    node: str
    at: datetime
    until: datetime | None
    source: str | None
    kind: str
    severity: Severity
    gpu: int | None
    resolved: bool
    text: str


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What one record says: at least one event."""

    said: tuple[NodeStatement, ...]


def parse(
    value: bytes | None, headers: Sequence[tuple[str, bytes]] = (), *, cluster: str | None = None
) -> NodeReport | Skipped:
    """One record as it came from a topic or a request.

    Args:
        value: JSON, or a kernel's line as plain text; at most 1 MiB. None is a topic's deletion marker.
        headers: Kafka's (or HTTP's); they matter for CloudEvents only.
        cluster: the name for records that carry none.

    Raises:
        UnreadableRecord: names the field that is wrong and what was expected there; never another exception.
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


def _decode(value: bytes) -> Any:
    """JSON; a line that is none is a kernel's, as text."""
    stripped = value.strip()
    if not stripped.startswith((b"{", b"[", b'"')):
        try:
            return stripped.decode()
        except UnicodeDecodeError:
            raise field_reading.unreadable("(whole record)", "JSON, or a line in UTF-8") from None
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError as error:
        if stripped.startswith(b"[") and b"\n" not in stripped:  # dmesg begins with [ 123.456]
            return stripped.decode("utf-8", "replace")
        raise UnreadableRecord(f"not JSON: {error}", (FieldError("(whole record)", f"JSON: {error}"),)) from None


def _read(obj: Any, cluster: str | None, depth: int, envelope: Mapping[str, Any] | None = None) -> NodeReport | Skipped:
    if isinstance(obj, bytes):
        obj = _decode(obj)
    if isinstance(obj, str):
        return _report([node_events_kernel.line(obj, cluster)], envelope)
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
    """The events of native objects; an envelope names and dates those that have no name or date of their own."""
    said: list[NodeStatement] = []
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
            said.extend(_said(NodeEvent.model_validate(obj)))
        except ValidationError as error:
            raise as_unreadable(error) from None
    return NodeReport(tuple(said))


def _said(event: NodeEvent) -> list[NodeStatement]:
    text = _clean(event.text)
    kind = event.kind or of_text(text)
    severity: Severity = event.severity or evidence_weights.load().kinds[kind].severity
    assert severity in get_args(Severity)
    source = None if event.source is None else _clean(event.source)[:60]
    gpu = event.gpu if event.gpu is not None else gpu_in(text)
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
            NodeStatement(
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
    """Without secrets, and cut: before redaction generously, so that no half of a secret stays."""
    whole = text[: 4 * TEXT_MOST].encode("utf-8", "replace").decode("utf-8")
    return redact(whole)[:TEXT_MOST]


_EXPECTED = (
    "a node-event/1 object, a CloudEvent, a Kubernetes Event of a Node, a Kubernetes Node, DCGM's health or policy "
    "violation, journald's JSON, or a kernel's line"
)
_FORMATS: tuple[
    tuple[
        Callable[[Mapping[str, Any]], bool],
        Callable[[Mapping[str, Any], str | None], Sequence[Mapping[str, Any]] | Skipped],
    ],
    ...,
] = (
    (lambda obj: "schema" in obj, lambda obj, cluster: [{"cluster": cluster, **obj}]),
    (node_events_kubernetes.is_it, node_events_kubernetes.read),
    (node_events_dcgm.is_it, node_events_dcgm.read),
    (node_events_kernel.is_it, node_events_kernel.read),
)
