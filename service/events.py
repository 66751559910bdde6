"""The wire contract: job-completion/1, one JSON object a finished job attempt, and how bytes become one."""

import hashlib
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from classifiers.case import JobFacts
from service.errors import FieldError, UnreadableRecord

SCHEMA = "job-completion/1"
MAX_EVENT_BYTES = 16 * 1024 * 1024
CLOCK_TOLERANCE = timedelta(days=1)

Key = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class Status(StrEnum):
    """How a finished attempt ended (contract, section 2)."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAIL = "node_fail"
    PREEMPTED = "preempted"
    EVICTED = "evicted"
    HUNG = "hung"
    CANCELLED = "cancelled"


# In the failure rate's numerator; `preempted` is shown apart, `cancelled` counts on neither side.
FAILURE_STATUSES = frozenset(
    {Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.NODE_FAIL, Status.EVICTED, Status.HUNG}
)
CLASSIFIED_STATUSES = FAILURE_STATUSES | {Status.PREEMPTED, Status.CANCELLED}


class _Open(BaseModel):
    """Unknown fields are kept; numbers and strings are not turned into each other."""

    model_config = ConfigDict(extra="allow", strict=False, frozen=True)


class Requested(_Open):
    """What the job asked for."""

    cpus: Count | None = None
    memory_bytes: Count | None = None


class Checkpoint(_Open):
    """The last checkpoint known."""

    uri: str | None = None
    step: Count | None = None
    at: AwareDatetime | None = None


class LogRef(_Open):
    """One stream: its tail inline, or where to fetch it. `rank` null is the launcher."""

    rank: Annotated[int, Field(ge=0, le=2**31)] | None = None
    node: str | None = None
    stream: str | None = None
    tail: str | None = None
    uri: str | None = None


class NodeEventIn(_Open):
    """One line of a node's own."""

    at: AwareDatetime | None = None
    node: str | None = None
    source: str | None = None
    text: str


class JobCompletion(_Open):
    """job-completion/1. `event_id` is always set after `finish`."""

    schema_: Annotated[str, Field(alias="schema")] = SCHEMA
    event_id: Key | None = None
    cluster: Key
    job_id: Key
    attempt: Count | None = None
    name: str | None = None
    user: str | None = None
    team: str | None = None
    queue: str | None = None
    framework: str | None = None
    image: str | None = None
    command: str | None = None
    gpu_type: str | None = None
    status: Status
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: Annotated[int, Field(ge=0, le=255)] | None = None
    scheduler: str | None = None
    reason: str | None = None
    message: str | None = None
    submitted_at: AwareDatetime | None = None
    started_at: AwareDatetime | None = None
    ended_at: AwareDatetime
    time_limit_s: Count | None = None
    gpus: Count | None = None
    restart_count: Count | None = None
    requested: Requested | None = None
    checkpoint: Checkpoint | None = None
    nodes: tuple[str, ...] = ()
    topology: dict[str, dict[str, Any]] = Field(default_factory=dict)
    logs: tuple[LogRef, ...] = ()
    node_events: tuple[NodeEventIn, ...] = ()
    resubmit_of: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    pod: str | None = Field(
        default=None, description="Kubernetes: the pod this attempt ran in, where job_id names its controller"
    )

    @field_validator("schema_")
    @classmethod
    def _known_schema(cls, value: str) -> str:
        if value != SCHEMA:
            raise ValueError(f'"{SCHEMA}"')
        return value

    @field_validator("nodes", "logs", "node_events", "topology", "labels", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any, info: Any) -> Any:
        if value is None:
            return {} if info.field_name in {"topology", "labels"} else ()
        return value

    def facts(self) -> JobFacts:
        """What classification may know of the job."""
        return JobFacts(
            status=self.status.value,
            exit_code=self.exit_code,
            signal=self.signal,
            scheduler=self.scheduler,
            reason=self.reason,
            message=self.message,
            framework=self.framework,
            command=self.command,
            image=self.image,
            name=self.name,
            user=self.user,
            gpus=self.gpus,
            gpu_type=self.gpu_type,
            nodes=self.nodes,
            time_limit_s=self.time_limit_s,
            started_at=self.started_at,
            ended_at=self.ended_at,
            restart_count=self.restart_count,
            labels=self.labels,
        )

    def key(self) -> str:
        """The event's identity: its own id, or SHA-256 over cluster, job, attempt (or times) and status, in hex."""
        if self.event_id is not None:
            return self.event_id
        which: list[Any] = (
            [self.attempt] if self.attempt is not None else [_instant(self.started_at), _instant(self.ended_at)]
        )
        return hashlib.sha256(orjson.dumps([self.cluster, self.job_id, *which, self.status.value])).hexdigest()

    def clock_suspect(self, now: datetime) -> bool:
        """Whether the times contradict each other or lie more than a day ahead of `now`."""
        times = [at for at in (self.submitted_at, self.started_at, self.ended_at) if at is not None]
        return times != sorted(times) or max(times) > now + CLOCK_TOLERANCE


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def as_unreadable(error: ValidationError) -> UnreadableRecord:
    """The library's complaint in the project's words: one FieldError a place."""
    places = []
    for problem in error.errors(include_url=False)[:20]:
        context = problem.get("ctx", {})
        expected = str(context["error"]) if "error" in context else problem["msg"]
        got = None if problem["type"] == "missing" else repr(problem["input"])[:80]
        field = ".".join(str(part) for part in problem["loc"]) or "(whole object)"
        places.append(FieldError(field=field, expected=expected, got=got))
    first = places[0]
    return UnreadableRecord(f"{first.field}: {first.expected}", tuple(places))


def from_object(data: Any) -> JobCompletion:
    """A native event from decoded JSON.

    Raises:
        UnreadableRecord: names each field that is wrong and what was expected there.
    """
    try:
        return JobCompletion.model_validate(data)
    except ValidationError as error:
        raise as_unreadable(error) from None
