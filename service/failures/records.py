"""Records of failures: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from classifiers.contracts import LogStream
from service.errors import DamagedData, FaultlineError, NotFound, Unavailable
from service.jobs.records import Attempt, JobOutcome, NewJob
from service.log_storage.records import LogsToStore

Source = Literal["machine", "person"]


COUNTED_AS_FAILED = "counted_as_failed"  # as a filter: the statuses of the failure rate, of counted jobs
FailureSort = Literal["-ended_at", "ended_at", "-gpu_hours_lost"]


@dataclass(frozen=True, slots=True)
class NewFailure:
    """A diagnosed attempt whose outcome has `opens` set.

    `verdict` is verdict/1 as a dict (service.contracts.verdict.to_wire); `streams` are the redacted logs as read;
    `event` is the redacted job-completion/1 object without log tails.
    """

    outcome: JobOutcome
    job: NewJob
    verdict: Mapping[str, Any]
    streams: LogsToStore = ()
    event: Mapping[str, Any] = field(default_factory=dict)
    source: Source = "machine"


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """The logs and the event that are stored for one attempt of a failure.

    `attempt_id` is the job row's id; `load` reads the logs where they are stored, which may be outside the database.
    """

    attempt_id: int
    load: Callable[[], tuple[LogStream, ...]]
    event: Mapping[str, Any]
    _read: list[tuple[LogStream, ...] | FaultlineError] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @property
    def _loaded(self) -> tuple[LogStream, ...] | FaultlineError:
        # Not a cached_property: before Python 3.12 its lock lets one thread at a time read any log.
        if not self._read:
            try:
                self._read.append(self.load())
            except (DamagedData, NotFound, Unavailable) as error:
                self._read.append(error)
        return self._read[0]

    def prefetch(self) -> None:
        """Read the logs now; an error shows when they are used."""
        _ = self._loaded

    @property
    def unreadable(self) -> str | None:
        """Why the logs cannot be read now; None if they can."""
        return self._loaded.detail if isinstance(self._loaded, FaultlineError) else None

    @property
    def streams(self) -> tuple[LogStream, ...]:
        """The logs to show; if they cannot be read, one stream without text that says why."""
        loaded = self._loaded
        return (LogStream("", missing=loaded.detail),) if isinstance(loaded, FaultlineError) else loaded

    def readable_streams(self) -> tuple[LogStream, ...]:
        """The logs, for a use that would be wrong without them.

        Raises:
            DamagedData: what is stored are no logs.
            NotFound: they are not stored any more.
            Unavailable: their storage does not answer.
        """
        if isinstance(self._loaded, FaultlineError):
            raise self._loaded
        return self._loaded


@dataclass(frozen=True, slots=True)
class FailureRow:
    """One row of the failures list: fields of the current verdict and of the job."""

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
class FailureDetail:
    """All that is stored of one failure.

    `verdict` is the current verdict/1 (None where retention removed its body); `versions` are newest first;
    `logs` one entry an attempt that was diagnosed, oldest first; `attempts` every attempt of the job, oldest first
    (service.jobs.same_job: not those of another job with the same id).
    """

    row: FailureRow
    verdict: Mapping[str, Any] | None
    versions: tuple[VerdictVersion, ...]
    logs: tuple[AttemptLogs, ...]
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Visibility:
    """Which failures a caller may see: those of these users (on one cluster, or on any if None) and of these teams.

    `clusters`: only failures of these clusters; without users and teams, all of them. None: any cluster.
    """

    users: tuple[tuple[str | None, str], ...]
    teams: tuple[str, ...]
    clusters: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ListedFailure:
    """The id of a failure, and who gave its current verdict."""

    id: int
    source: Source


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Filters of the failures list; None does not filter.

    Codes and names match exactly. `group` is a fingerprint. `node` ran the job, `suspect` is the node that the verdict
    suspects. `status`: one, or COUNTED_AS_FAILED. `q`: every word must occur in the headline, the
    most significant evidence line, in any case; a page may then hold fewer items than `limit` and still have a
    `next_cursor`. `job`: the id of the job, or its name among the newest 10,000 failures. `since` ≤ ended_at < `until`.
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
    suspect: str | None = None
    group: str | None = None
    status: str | None = None
    abstained: bool | None = None
    q: str | None = None
    job: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    visible: Visibility | None = None


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The failures of one group among those of a filter, the number of their users, and what they cost."""

    group_id: int
    failures: int
    users: int
    gpu_hours_lost: float


@dataclass(frozen=True, slots=True)
class GroupShares:
    """The most frequent groups among the newest `of` failures of a filter, most first.

    `whole`: no other failure matches. `more`: the number of further groups.
    """

    of: int
    whole: bool
    shares: tuple[GroupShare, ...]
    more: int


@dataclass(frozen=True, slots=True)
class PendingLog:
    """Logs that were not available for the verdict: `refs` are entries of an event's `logs` (rank, node, uri).

    `attempt_id` is the job row whose logs these are. Tried from `next_at` on, given up after `until`.
    """

    failure_id: int
    attempt_id: int
    refs: tuple[Mapping[str, Any], ...]
    next_at: datetime
    until: datetime
    tries: int = 0
