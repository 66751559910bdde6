"""Records of incidents: plain frozen dataclasses, no SQL. Times are aware and in UTC."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from service.contracts.advice import IncidentState, Outcome
from service.resubmissions.records import RequestState

IncidentKind = Literal["node", "rack", "switch", "file_system", "storage_host", "registry", "image", "fingerprint"]


@dataclass(frozen=True, slots=True)
class Incident:
    """Many jobs of several users that failed with one fingerprint or over one shared resource (`kind`, `value`).

    `by_hand`: a person holds it, so no probe is released. `probe` is the request that was released first; `probe_at` is
    when the next one may be. `held` counts its held requests (0 where not requested); `probe_row` is the probe's row
    number.
    """

    id: int
    key: str
    kind: IncidentKind
    value: str
    cluster: str
    cause: str
    title: str
    state: IncidentState
    by_hand: bool
    opened_at: datetime
    last_at: datetime
    jobs: int
    users: int
    probes: int = 0
    probe: str | None = None
    probe_at: datetime | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    held: int = 0
    probe_row: int | None = None


@dataclass(frozen=True, slots=True)
class MemberCounts:
    """Members of an incident. `lineages`: a job and its resubmissions count once."""

    attempts: int
    jobs: int
    lineages: int
    users: int


@dataclass(frozen=True, slots=True)
class IncidentJob:
    """One failure that belongs to an incident."""

    failure_id: int
    at: datetime
    user: str | None
    job_id: str
    cluster: str
    request_id: str | None = None
    request_state: RequestState | None = None
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class IncidentNote:
    """One line of an incident's history."""

    at: datetime
    by: str
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class IncidentDetail:
    """An incident with its failed attempts (newest first, the first few hundred), history (oldest first) and counts."""

    incident: Incident
    jobs: tuple[IncidentJob, ...]
    notes: tuple[IncidentNote, ...]
    counts: MemberCounts


@dataclass(frozen=True, slots=True)
class NewSignal:
    """A failure over a shared resource."""

    key: str
    failure_id: int
    at: datetime
    user: str | None


@dataclass(frozen=True, slots=True)
class Signal:
    """A stored signal. `user` is "" if no user is known."""

    failure_id: int
    at: datetime
    user: str


@dataclass(frozen=True, slots=True)
class NewIncident:
    """A new incident; `by` is "policy" or the person who opens it."""

    key: str
    kind: IncidentKind
    value: str
    cluster: str
    cause: str
    title: str
    by: str
    probe_at: datetime | None
    by_hand: bool = False
