"""Records of jobs: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from service.nodes.records import NodePlace

OutcomeKind = Literal["new", "duplicate", "conflict"]


@dataclass(frozen=True, slots=True)
class NewJob:
    """One finished attempt to be stored. `event_id` is the event's key (JobCompletion.key()), ≤ 200 characters.

    `digest` is the content digest of the event (16 bytes, `service.jobs.new_job.content_digest`): the same key with
    another digest is a conflict. `places`: where nodes are, as far as the event names it. `diagnosed` says that a
    verdict was made for this attempt, so that it opens a failure or joins one. `gpu_hours_lost` = gpus × (end − later
    of start and last checkpoint) in hours; 0 for succeeded.
    """

    event_id: str
    digest: bytes
    cluster: str
    job_id: str
    status: str
    ended_at: datetime
    received_at: datetime
    attempt: int | None = None
    pod: str | None = None
    name: str | None = None
    user: str | None = None
    team: str | None = None
    queue: str | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    nodes: tuple[str, ...] = ()
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    resubmit_of: str | None = None
    restart_count: int | None = None
    clock_suspect: bool = False
    gpu_hours_lost: float = 0.0
    diagnosed: bool = False
    places: Mapping[str, NodePlace] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CountedAs:
    """How a failure counts: the facts of the one attempt that represents its job (see service.jobs.pod_attempts)."""

    counted: bool
    status: str
    ended_at: datetime
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Result of storing one NewJob.

    `kind`: "new" was stored; "duplicate" is stored already with the same content; "conflict" the same key with other
    content (the first stays, the conflict is counted on its row).
    `id` is the stored row's id, None if retention removed the row and only the key is left.
    `failure_id` is the failure this attempt belongs to, None if it has none. `opens`: this attempt
    opens the failure (then `failure_id == id`, and the caller must call `failures.add` for it in the same
    transaction); a new diagnosed attempt that does not open one joined an earlier one (`failures.revise`).
    """

    kind: OutcomeKind
    id: int | None
    failure_id: int | None = None
    opens: bool = False
    counts: CountedAs | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One stored attempt of a job. The fields from `failure_id` on are None where there is no failure."""

    id: int
    event_id: str
    cluster: str
    job_id: str
    attempt: int | None
    pod: str | None
    name: str | None
    status: str
    user: str | None
    team: str | None
    queue: str | None
    gpus: int | None
    gpu_type: str | None
    nodes: tuple[str, ...]
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime
    received_at: datetime
    resubmit_of: str | None
    restart_count: int | None
    clock_suspect: bool
    counted: bool
    conflicts: int
    gpu_hours_lost: float
    failure_id: int | None
    side: str | None = None
    cause: str | None = None
    headline: str | None = None
    abstained: bool | None = None
