"""Routing conditions as data: an endpoint receives a message if all conditions of a route hold."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from classifiers.taxonomy import Decision, Side
from service.deliveries.records import FailureFacts


class Route(BaseModel):
    """One route to an endpoint; an absent condition always holds, one with an unknown fact does not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: tuple[str, ...] | None = Field(default=None, description='"failure.*" matches every type below failure')
    side: tuple[Side, ...] | None = None
    cause: tuple[str, ...] | None = Field(default=None, description='codes; "HW.*" matches every code below HW')
    decision: tuple[Decision, ...] | None = None
    cluster: tuple[str, ...] | None = None
    team: tuple[str, ...] | None = None
    queue: tuple[str, ...] | None = None
    user: tuple[str, ...] | None = None
    abstained: bool | None = None
    min_gpu_hours: float | None = Field(default=None, ge=0, description="GPU-hours the job lost at least")
    min_gpus: int | None = Field(default=None, ge=0, description="GPUs the job had at least")
    new_kind: bool | None = Field(default=None, description="whether it is the first failure of its kind")

    def takes(self, kind: str, verdict: Mapping[str, Any], facts: FailureFacts | None) -> bool:
        """Whether a message matches this route."""
        return (
            _any(self.type, kind)
            and _any(self.side, verdict.get("side"))
            and _any(self.cause, verdict.get("cause"))
            and _any(self.decision, verdict.get("decision"))
            and _any(self.cluster, verdict.get("cluster"))
            and _any(self.team, facts.team if facts else None)
            and _any(self.queue, facts.queue if facts else None)
            and _any(self.user, facts.user if facts else None)
            and (self.abstained is None or verdict.get("abstained") is self.abstained)
            and (self.min_gpu_hours is None or (facts is not None and facts.gpu_hours_lost >= self.min_gpu_hours))
            and (self.min_gpus is None or (facts is not None and (facts.gpus or 0) >= self.min_gpus))
            and (self.new_kind is None or (facts is not None and facts.new_kind is self.new_kind))
        )


def _any(wanted: tuple[str, ...] | None, got: object) -> bool:
    """Whether `got` is one of `wanted`; `X.*` matches everything that begins with `X.`."""
    if wanted is None:
        return True
    if not isinstance(got, str):
        return False
    return any(got.startswith(one[:-1]) if one.endswith(".*") else got == one for one in wanted)
