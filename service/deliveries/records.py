"""Records of deliveries: one message to one endpoint, and the state of an endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

# A weekly report for one subscriber. Its payload names the endpoint and, for a personal one, the user.
REPORT_SUBSCRIPTION = "report.subscription"
DeliveryState = Literal["waiting", "sent", "given_up"]


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A message for one endpoint. `refused`: why it is not sent (the endpoint is gone)."""

    message_id: int
    endpoint: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A leased delivery with its message; `attempts` counts failed attempts."""

    message_id: int
    endpoint: str
    type: str
    key: str
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A delivery for display. `detail`: the result of the last attempt."""

    message_id: int
    endpoint: str
    type: str
    key: str
    created_at: datetime
    state: DeliveryState
    attempts: int
    available_at: datetime
    detail: str | None
    done_at: datetime | None


@dataclass(frozen=True, slots=True)
class EndpointState:
    """The circuit breaker of an endpoint.

    `address_sha256` is that of its address: a changed address resets the rest. `failures` counts consecutive ones; the
    endpoint is paused until `paused_until`, and off while `disabled_at` is set.
    """

    name: str
    address_sha256: str
    failures: int = 0
    paused_until: datetime | None = None
    disabled_at: datetime | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """The facts of a failure that routing needs besides the verdict.

    `new_kind`: the first stored failure of its kind.
    """

    status: str
    user: str | None
    team: str | None
    queue: str | None
    gpu_hours_lost: float
    gpus: int | None = None
    new_kind: bool = False


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A message to be sent after the transaction is committed.

    `type` as in "failure.diagnosed"; `key` orders messages (cluster/job_id).
    """

    type: str
    key: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A leased outbox message: it is sent, then marked as done or released."""

    id: int
    type: str
    key: str
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int


def verdict_message(kind: str, failure_id: int | None, wire: Mapping[str, Any]) -> OutboxMessage:
    """The message about a verdict: the verdict without its bulky parts, and the first line of evidence."""
    summary = dict(wire)
    for name in ("evidence", "weighed", "missing", "reasons"):
        summary.pop(name, None)
    first = next((line for line in wire["evidence"] if line["role"] == "initiating"), None)
    return OutboxMessage(
        kind,
        f"{wire['cluster']}/{wire['job_id']}",
        {"failure_id": failure_id, "headline": first["text"][:300] if first else None, "verdict": summary},
    )
