"""What goes into the store and comes out of it: plain frozen dataclasses, no SQL.

Times are aware and UTC on the way out; any aware time goes in. Text is stored as it comes, except that what neither
database can hold (null characters, lone surrogates) becomes U+FFFD. Redaction happens before the store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from classifiers.case import LogStream

T = TypeVar("T")

OutcomeKind = Literal["new", "duplicate", "conflict"]
Source = Literal["machine", "person"]
FailureSort = Literal["-ended_at", "ended_at", "-gpu_hours_lost"]
Scope = Literal["ingest", "read", "act", "admin"]


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is opaque; None on the last page."""

    items: tuple[T, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """One finished attempt, as it goes in. `event_id` is the event's key (JobCompletion.key()), ≤ 200 characters.

    `digest` is the content digest of the event (16 bytes, `service.store.incoming.content_digest`): the same key with
    another digest is a conflict. `diagnosed` says that a verdict was made for this attempt, so that it opens a failure
    or joins one. `gpu_hours_lost` = gpus × (end − later of start and last checkpoint) in hours; 0 for succeeded.
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


@dataclass(frozen=True, slots=True)
class CountedAs:
    """How a failure counts: the facts of the one attempt that stands for its job (see service.store.controllers)."""

    counted: bool
    status: str
    ended_at: datetime
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of one NewJob, in the order they were given.

    `kind`: "new" was stored; "duplicate" is stored already with the same content; "conflict" the same key with other
    content (the first stays, the conflict is counted on its row).
    `id` is the stored row's id, None where retention removed the row and only the key is left.
    `failure_id` is the failure this attempt belongs to, None if it has none. `opens` says that this very attempt
    opens the failure (then `failure_id == id`, and the caller must call `failures.add` for it in the same
    transaction); a new diagnosed attempt that does not open one joined an earlier one (`failures.revise`).
    """

    kind: OutcomeKind
    id: int | None
    failure_id: int | None = None
    opens: bool = False
    counts: CountedAs | None = None


@dataclass(frozen=True, slots=True)
class NewFailure:
    """A diagnosed attempt whose outcome says `opens`.

    `verdict` is verdict/1 as a dict (service.verdict.to_wire); `streams` are the redacted logs as read;
    `event` is the redacted job-completion/1 object without log tails.
    """

    outcome: JobOutcome
    job: NewJob
    verdict: Mapping[str, Any]
    streams: Sequence[LogStream] = ()
    event: Mapping[str, Any] = field(default_factory=dict)
    source: Source = "machine"


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """What a failure keeps of one attempt: its logs as read and its event. `attempt_id` is the job row's id."""

    attempt_id: int
    streams: tuple[LogStream, ...]
    event: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One line of the failures list: the current verdict's fields beside the job's."""

    id: int
    cluster: str
    job_id: str
    attempt: int | None
    name: str | None
    status: str
    user: str | None
    team: str | None
    queue: str | None
    nodes: tuple[str, ...]
    gpus: int | None
    started_at: datetime | None
    ended_at: datetime
    received_at: datetime
    gpu_hours_lost: float
    side: str
    cause: str
    category: str | None
    symptom: str | None
    platform_symptom: str | None
    confidence: float
    abstained: bool
    retry_outlook: str | None
    fingerprint: str
    decision: str
    resubmit: bool
    headline: str
    suspect_node: str | None
    suspect_rank: int | None
    version: int
    source: Source
    counted: bool


@dataclass(frozen=True, slots=True)
class VerdictVersion:
    """One version of a failure's verdict; `body` is verdict/1, None where retention removed it."""

    version: int
    at: datetime
    source: Source
    model: str
    rules: str
    policy: str
    body: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One stored attempt of a job. `failure_id`, `side`, `cause`, `headline` are None where there is no failure."""

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


@dataclass(frozen=True, slots=True)
class FailureDetail:
    """All that is stored of one failure.

    `verdict` is the current verdict/1 (None where retention removed its body); `versions` are newest first;
    `logs` one entry an attempt that was diagnosed, oldest first; `attempts` every attempt of the job, oldest first.
    """

    row: FailureRow
    verdict: Mapping[str, Any] | None
    versions: tuple[VerdictVersion, ...]
    logs: tuple[AttemptLogs, ...]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Visible:
    """Whose failures somebody may see: those of these users (on a cluster; None: on any) and of these teams."""

    users: tuple[tuple[str | None, str], ...]
    teams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """What the failures list is narrowed to; None asks nothing.

    Codes and names match exactly. `group` is a fingerprint. `q`: every word must stand in the headline, the
    evidence line that says most, in any case; a page may then hold fewer items than asked for and still have a
    `next_cursor`. `since` ≤ ended_at < `until`.
    """

    side: str | None = None
    cause: str | None = None
    symptom: str | None = None
    category: str | None = None
    cluster: str | None = None
    queue: str | None = None
    team: str | None = None
    user: str | None = None
    node: str | None = None
    group: str | None = None
    status: str | None = None
    abstained: bool | None = None
    q: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    visible: Visible | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What could not be read, as it goes in. `text` is redacted; `sha256` is of the raw bytes, hex.

    `place` says where it came from: "topic/partition/offset", "POST /api/v1/events line 3", "replay file:12".
    """

    text: str
    sha256: str
    place: str
    reason: str
    errors: tuple[Mapping[str, Any], ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredDeadLetter:
    """A dead letter as stored."""

    id: int
    at: datetime
    place: str
    reason: str
    errors: tuple[Mapping[str, Any], ...]
    text: str
    sha256: str
    resent_at: datetime | None


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


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, without its secret."""

    id: int
    name: str
    scopes: frozenset[str]
    created_at: datetime
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PendingLog:
    """Logs that had not arrived when the verdict was made: `refs` are entries of an event's `logs` (rank, node, uri).

    `attempt_id` is the job row whose logs these are. Tried from `next_at` on, given up after `until`.
    """

    failure_id: int
    attempt_id: int
    refs: tuple[Mapping[str, Any], ...]
    next_at: datetime
    until: datetime
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """One line of a breakdown: `key` is a side or a cause."""

    key: str
    failures: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class HourCount:
    """One hour of the series; `hour` is its beginning."""

    hour: datetime
    finished: int
    failed: int
    by_side: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts over jobs that ended in [since, until).

    `finished` = succeeded + failed is the rate's denominator, `failed` its numerator (contract, section 2);
    `preempted` and `cancelled` stand apart. `rate` is None where nothing finished. Shares are of the failed ones,
    most first; a failed job without a verdict is under "unknown".
    """

    since: datetime
    until: datetime
    finished: int
    succeeded: int
    failed: int
    preempted: int
    cancelled: int
    rate: float | None
    gpu_hours_lost: float
    by_side: tuple[Share, ...]
    by_cause: tuple[Share, ...]
    by_status: Mapping[str, int]
    hours: tuple[HourCount, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """How far the pipeline can be trusted.

    Dead letters received and failures ended since `since`; what is open, conflicting, pending or waiting is counted
    as it stands now, and no further than to 10,001, which stands for more than 10,000. `abstained_share` is None where
    no failure ended since.
    """

    since: datetime
    dead_letters: int
    dead_letters_open: int
    diagnosed: int
    abstained: int
    abstained_share: float | None
    conflicts: int
    pending_logs: int
    outbox_waiting: int
