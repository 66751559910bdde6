"""What the store says about deliveries: one message to one endpoint, and the state of an endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

DeliveryState = Literal["waiting", "sent", "given_up"]


@dataclass(frozen=True, slots=True)
class NewDelivery:
    """A message that one endpoint is to be told. `refused`: why it is not even tried (the endpoint is gone)."""

    message_id: int
    endpoint: str
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """A leased delivery with its message; `attempts` failed ones before this."""

    message_id: int
    endpoint: str
    type: str
    key: str
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int


@dataclass(frozen=True, slots=True)
class StoredDelivery:
    """A delivery as people see it. `detail`: what the last try met."""

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
    """An endpoint's circuit: failures in a row, not tried before `paused_until`, not at all while `disabled_at`."""

    name: str
    target: str
    failures: int = 0
    paused_until: datetime | None = None
    disabled_at: datetime | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class FailureFacts:
    """What routing asks of a failure beyond its verdict. `new_kind`: none of its kind was stored before it."""

    status: str
    user: str | None
    team: str | None
    queue: str | None
    gpu_hours_lost: float
    gpus: int | None = None
    new_kind: bool = False


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """Something to tell others once the transaction is committed.

    `type` as in "failure.diagnosed"; `key` orders messages (cluster/job_id); `available_at` None is at once.
    """

    type: str
    key: str
    payload: Mapping[str, Any]
    available_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """An outbox message that was leased: to be told to others, then marked done or put back."""

    id: int
    type: str
    key: str
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int
