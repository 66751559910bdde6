"""Records of site layers: plain frozen dataclasses, no SQL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

GateDecision = Literal["promote", "ask", "refuse"]
PACKAGED: Final = "packaged"  # stands for the packaged model alone


@dataclass(frozen=True, slots=True)
class GateResult:
    """The gate's decision on a candidate, its reasons in words, and the figures that they rest on."""

    decision: GateDecision
    reasons: tuple[str, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """A site layer as stored; `text` is the layer as JSON."""

    id: str
    at: datetime
    who: str
    gate: GateResult
    text: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """One change of the layer in use; `layer` is `PACKAGED` for the packaged model alone."""

    id: int
    at: datetime
    who: str
    layer: str
    reason: str
