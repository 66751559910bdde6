"""The wire contract job-completion/1: one JSON object for each finished job attempt."""

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from classifiers.case_builder import job_facts
from classifiers.contracts import JobFacts
from classifiers.redaction import redact
from service import validation_words
from service.contracts.field_removal import places_of, without, without_frames
from service.errors import FieldError, UnreadableRecord
from service.times import EARLIEST, LATEST, iso_text

log = logging.getLogger(__name__)

SCHEMA = "job-completion/1"
MAX_EVENT_BYTES = 16 * 1024 * 1024
CLOCK_TOLERANCE = timedelta(days=1)
# More than the largest jobs have; a record with more empty entries could take gigabytes of memory.
NODES_MOST = 100_000
LOGS_MOST = 20_000
LABELS_MOST = 10_000
PROBLEMS_MOST = 20
LARGEST_COUNT = 2**53  # of bytes, GPUs ...: a number in JSON is exact up to it
# Wrong values of these refuse an event; wrong values of all others are dropped.
REQUIRED = frozenset({"schema", "event_id", "cluster", "job_id", "status", "ended_at"})
# A wrong field hides at most that of the object around it.
ROUNDS_MOST = 3
WRONG_MOST = 1_000  # values of a list that are dropped one by one
_MOST = {
    "nodes": NODES_MOST,
    "topology": NODES_MOST,
    "logs": LOGS_MOST,
    "node_events": LOGS_MOST,
    "labels": LABELS_MOST,
}
_SHOWN = 60
_LOOKED_AT = 4096
_LONGEST_NAME = 200


def _as_text(value: Any) -> Any:
    """Reject numbers (seconds or milliseconds?) as times; a leap second, allowed by RFC 3339, is the one before it."""
    if isinstance(value, str) and value[17:19] == "60":
        return f"{value[:17]}59{value[19:]}"
    if isinstance(value, str | datetime) and not (isinstance(value, str) and value.isdigit()):
        return value
    raise ValueError('a time as RFC 3339 with zone, such as "2026-11-20T03:41:57Z"')


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time between the years 1 and 9999 in UTC") from None


# Control characters are not allowed in names that become part of keys, URLs and file names.
Key = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f\ufffd]+$")]
# Strict: "1" and 1.0 are not counts.
Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT, strict=True)]
ExitCode = Annotated[int, Field(ge=0, le=255, strict=True)]
Rank = Annotated[int, Field(ge=0, le=2**31, strict=True)]
Instant = Annotated[AwareDatetime, BeforeValidator(_as_text), AfterValidator(_in_utc)]


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


# Counted in the numerator of the failure rate; `preempted` is shown separately, `cancelled` is not counted at all.
# In order, so that the statements that ask for them are always the same.
FAILURE_STATUSES = tuple(
    sorted((Status.FAILED, Status.TIMEOUT, Status.OUT_OF_MEMORY, Status.NODE_FAIL, Status.EVICTED, Status.HUNG))
)
FINISHED_STATUSES = (*FAILURE_STATUSES, Status.SUCCEEDED.value)  # the denominator of the failure rate
CLASSIFIED_STATUSES = frozenset(FAILURE_STATUSES) | {Status.PREEMPTED, Status.CANCELLED}


class _Open(BaseModel):
    """A model that keeps unknown fields and does not convert between numbers and strings."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True, hide_input_in_errors=True)


class Requested(_Open):
    """Resources that the job requested."""

    cpus: Count | None = None
    memory_bytes: Count | None = None


class Checkpoint(_Open):
    """The last known checkpoint."""

    uri: str | None = None
    step: Count | None = None
    at: Instant | None = None


class LogRef(_Open):
    """One log stream: its tail inline, or its location. `rank` null is the launcher."""

    kind: str | None = Field(
        default=None,
        description="what the log is: log (default); flight_recorder, a PyTorch Flight Recorder dump of one rank, as "
        "JSON or pickled, in `tail` as JSON text or base64; torchrun_error, nvidia_smi, dmesg, sacct, nccl_ras or "
        "py_spy, the output of these tools as text; other kinds are kept and not read",
    )
    rank: Rank | None = None
    node: str | None = None
    stream: str | None = None
    tail: str | None = None
    uri: str | None = None
    missing: str | None = Field(default=None, description="why the stream is known not to be readable")

    def absence(self, unread: str = "not read") -> str:
        """Why a log without a tail has no text, with its secrets; `unread` is the reason if it has an address."""
        return self.missing or (unread if self.uri is not None else "neither a tail nor a uri is given")


class NodeEventIn(_Open):
    """One event of a node, such as a kernel line."""

    at: Instant | None = None
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
    uid: Annotated[int, Field(ge=0, lt=2**32, strict=True)] | None = Field(
        default=None, description="number of the user on the cluster's file systems, as the scheduler knows it"
    )
    team: str | None = None
    queue: str | None = None
    framework: str | None = None
    image: str | None = None
    command: str | None = None
    gpu_type: str | None = None
    status: Status
    exit_code: ExitCode | None = None
    signal: ExitCode | None = None
    scheduler: str | None = None
    reason: str | None = None
    message: str | None = None
    submitted_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant
    time_limit_s: Count | None = None
    gpus: Count | None = None
    restart_count: Count | None = None
    requested: Requested | None = None
    checkpoint: Checkpoint | None = None
    nodes: tuple[str, ...] = Field(default=(), max_length=NODES_MOST)
    topology: dict[str, dict[str, Any]] = Field(default_factory=dict, max_length=NODES_MOST)
    logs: tuple[LogRef, ...] = Field(default=(), max_length=LOGS_MOST)
    node_events: tuple[NodeEventIn, ...] = Field(default=(), max_length=LOGS_MOST)
    resubmit_of: str | None = None
    labels: dict[str, str] = Field(default_factory=dict, max_length=LABELS_MOST)
    pod: str | None = Field(
        default=None,
        description="Kubernetes: the pod (or inner Job) of this attempt, where job_id names its controller",
    )

    intake_problems: tuple[str, ...] = Field(
        default=(), description="what was repaired or dropped when the event was read, set by Faultline"
    )
    intake_source: str | None = Field(
        default=None, description="where the event came from, set by Faultline: topic/NAME, api/TOKEN or file"
    )

    @model_validator(mode="before")
    @classmethod
    def _repair_node_events(cls, data: Any) -> Any:
        entries = data.get("node_events") if isinstance(data, dict) else None
        if not isinstance(entries, list | tuple) or len(entries) > LOGS_MOST:
            return data
        repaired, problems = repair_node_events(entries)
        return data | {"node_events": repaired, "intake_problems": problems} if problems else data

    @field_validator("schema_")
    @classmethod
    def _known_schema(cls, value: str) -> str:
        if value != SCHEMA:
            raise ValueError(f'"{SCHEMA}"')
        return value

    @field_validator(*_MOST, mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.field_name or ""
        if value is None:
            return {} if name in {"topology", "labels"} else ()
        # Checked before the entries are validated: each of millions of wrong entries would give an error.
        if isinstance(value, list | tuple | dict) and len(value) > _MOST[name]:
            raise ValueError(f"at most {_MOST[name]} entries")
        return value

    def with_problems(self, problems: Sequence[str], *, more: int = 0) -> "JobCompletion":
        """Return the event with further problems of its reading; `more` problems are not described."""
        found = [*self.intake_problems, *problems]
        more = max(more, 0) + max(len(found) - PROBLEMS_MOST, 0)
        listed = (*found[:PROBLEMS_MOST], *([f"and {more} more"] if more else ()))
        return self.model_copy(update={"intake_problems": listed})

    def received_from(self, source: str) -> "JobCompletion":
        """Return the event with the place it came from, whatever it says itself."""
        return self.model_copy(update={"intake_source": source})

    def facts(self) -> JobFacts:
        """Return the facts of the job that classification may use."""
        return job_facts(self)

    def key(self) -> str:
        """Return the event's identity: its id, else SHA-256 of cluster, job, attempt (or times) and status, in hex."""
        if self.event_id is not None:
            return self.event_id
        which: list[Any] = (
            [self.attempt] if self.attempt is not None else [iso_text(self.started_at), iso_text(self.ended_at)]
        )
        return hashlib.sha256(orjson.dumps([self.cluster, self.job_id, *which, self.status.value])).hexdigest()

    def without_unset_times(self) -> "JobCompletion":
        """Return the event without a submit or start time that is zero: programs write it for one that they lack."""
        unset = {name: None for name in ("submitted_at", "started_at") if (getattr(self, name) or LATEST) < EARLIEST}
        return self.model_copy(update=unset) if unset else self

    def clock_suspect(self, now: datetime) -> bool:
        """Return whether the times contradict each other or are more than a day after `now`."""
        times = [at for at in (self.submitted_at, self.started_at, self.ended_at) if at is not None]
        return times != sorted(times) or max(times) > now + CLOCK_TOLERANCE


def repair_node_events(entries: Sequence[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """Return the node events that can be read, and a description of each repair; one bad line rejects no event.

    A time without a zone is taken as UTC. A node event that still can't be read is dropped.
    """
    readable: list[Any] = []
    problems: list[str] = []
    for number, entry in enumerate(entries):
        place = f"node_events.{number}"
        try:
            readable.append(NodeEventIn.model_validate(entry))
            continue
        except ValidationError as error:
            first = as_unreadable(error).errors[0]
        try:
            readable.append(NodeEventIn.model_validate(_with_utc(entry)))
            problems.append(f"{place}.at: no time zone, taken as UTC")
        except ValidationError:
            problems.append(f"{place}: dropped, {first.field}: expected {first.expected}")
    if len(problems) > PROBLEMS_MOST:
        problems[PROBLEMS_MOST:] = [f"and {len(problems) - PROBLEMS_MOST} more"]
    return readable, tuple(problems)


def _with_utc(entry: Any) -> Any:
    """Return the entry with its time in UTC if it has a time without a zone."""
    at = entry.get("at") if isinstance(entry, dict) else None
    if isinstance(at, str) and not at.isdigit():
        with suppress(ValueError):
            parsed = datetime.fromisoformat(at)
            if parsed.tzinfo is None:
                return entry | {"at": parsed.replace(tzinfo=UTC)}
    return entry


def _expected(problem: ErrorDetails) -> str:
    if problem["type"] == "string_pattern_mismatch":
        return "a text without control or replacement characters"
    return validation_words.expected(problem)


def shortened(value: Any) -> str:
    """Describe a wrong value for an error message: shortened, redacted and without nested content."""
    if isinstance(value, str):
        return repr(redact(value[:_LOOKED_AT])[:_SHOWN])
    if value is None or isinstance(value, bool | int | float | datetime):
        return repr(value)[:_SHOWN]
    return type(value).__name__


def named(field: str) -> str:
    """Name a field in an error message: a name that the record chooses, such as that of a label, may be endless."""
    return field if len(field) <= _LONGEST_NAME else redact(field[:_LOOKED_AT])[:_LONGEST_NAME] + "…"


def as_unreadable(error: ValidationError) -> UnreadableRecord:
    """Convert a validation error to UnreadableRecord with one FieldError for each field."""
    places = []
    for problem in without_frames(error).errors(include_url=False)[:20]:
        expected = _expected(problem)
        got = None if problem["type"] == "missing" else shortened(problem["input"])
        field = named(".".join(str(part) for part in problem["loc"])) or "(whole object)"
        places.append(FieldError(field=field, expected=expected, got=got))
    first = places[0]
    return UnreadableRecord(f"{first.field}: expected {first.expected}", tuple(places))


def described(error: FieldError) -> str:
    """A wrong field that was left out, as an entry of `intake_problems`."""
    got = "" if error.got is None else f", got {error.got}"
    return f"{error.field}: dropped, expected {error.expected}{got}"


def from_object(data: Any) -> JobCompletion:
    """Return the native event of decoded JSON; wrong optional fields are dropped, listed in the event and logged.

    Raises:
        UnreadableRecord: required fields are wrong; the error names each wrong field with the expected value.
    """
    if isinstance(data, dict) and "intake_problems" in data:
        data = {key: value for key, value in data.items() if key != "intake_problems"}
    try:
        event = JobCompletion.model_validate(data)
    except ValidationError as error:
        found = _without_wrong_lists(data, error) if error.error_count() > WRONG_MOST else None
        event = found or _without_wrong_fields(data, error)
    if event.intake_problems:
        log.warning("event of job %s: %s", event.job_id, "; ".join(event.intake_problems))
    return event


def _without_wrong_lists(data: Any, error: ValidationError) -> JobCompletion | None:
    """Drop whole lists with many wrong entries, each of which takes 20 µs to drop; None: there are none.

    Raises:
        UnreadableRecord: required fields are wrong.
    """
    counts = Counter(place["loc"][0] for place in places_of(error) if place["loc"])
    many = [name for name in _MOST if counts[name] > WRONG_MOST]
    if not many:
        return None
    rest = {name: value for name, value in data.items() if name not in many}
    problems = [f"{name}: dropped, expected entries as described, got {counts[name]} wrong values" for name in many]
    try:
        event = JobCompletion.model_validate(rest)
    except ValidationError as further:
        event = _without_wrong_fields(rest, further)
    return event.with_problems(problems)


def _without_wrong_fields(data: Any, error: ValidationError) -> JobCompletion:
    refused = as_unreadable(error)
    problems: list[str] = []
    dropped = 0
    for _ in range(ROUNDS_MOST):
        paths = [place["loc"] for place in error.errors(include_url=False, include_context=False, include_input=False)]
        if any(not path or path[0] in REQUIRED for path in paths):
            raise refused from None
        problems += [described(one) for one in as_unreadable(error).errors]
        dropped += len(paths)
        data = without(data, paths)
        try:
            return JobCompletion.model_validate(data).with_problems(problems, more=dropped - len(problems))
        except ValidationError as another:
            error = without_frames(another)
    raise refused from None
