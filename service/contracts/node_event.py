"""The wire contract of node events: node-event/1."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from classifiers.fleet_evidence import evidence_weights
from classifiers.fleet_evidence.evidence_weights import Severity
from classifiers.fleet_evidence.recent_changes import ALL_NODES, CHANGE
from service.contracts.event import Instant, Key

SCHEMA: Literal["node-event/1"] = "node-event/1"
NODES_MOST = 5_000  # maximum number of nodes of one event
Text = Annotated[str, Field(max_length=200_000)]


class NodeEvent(BaseModel):
    """A node-event/1 object. `node` or `nodes` is required; a missing `kind` is derived from the text, else "other".

    With the source `change` it reports a change of the platform (maintenance window, configuration, quota, mount,
    certificate, driver, image): its kind is `change`, and without a node it concerns the whole cluster.

    With `until` (or `start` and `end`) the event is a window, such as a maintenance. `resolved`: the condition ended.
    """

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    schema_: Annotated[Literal["node-event/1"], Field(alias="schema")] = SCHEMA
    id: Key | None = Field(default=None, description="given twice, the event is stored once")
    cluster: Key
    node: Key | None = None
    nodes: tuple[Key, ...] = Field(default=(), max_length=NODES_MOST)
    at: Instant = Field(description="when it was; `start` is another name")
    until: Instant | None = Field(default=None, description="the end of a window; `end` is another name")
    source: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="kernel, dcgm, kubelet, change ..."
    )
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
        if out.get("source") == CHANGE:
            out["kind"] = CHANGE
            if out.get("node") is None and not out.get("nodes"):
                out["node"] = ALL_NODES
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
        """Return the distinct nodes of the event."""
        return tuple(dict.fromkeys((*((self.node,) if self.node is not None else ()), *self.nodes)))
