"""Request and response models of automation."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from service.contracts.advice import AckResult
from service.contracts.event import Key
from service.incidents.records import Incident, IncidentJob, IncidentKind, IncidentNote, MemberCounts
from service.resubmissions.records import Rate, Request, RequestState, Switch

Token = Annotated[str, Field(min_length=1, max_length=100)]
Detail = Annotated[str, Field(max_length=4_000)]


class _RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LeaseRequest(_RequestBody):
    """A lease request. `hook` identifies the hook (kind and host) and is shown to people."""

    hook: Key
    cluster: Key
    max: Annotated[int, Field(ge=1, le=100, strict=True, description="maximum number of requests")] = 10
    seconds: Annotated[int, Field(ge=1, le=3_600, strict=True, description="duration of the lease in seconds")] = 60


class Ack(_RequestBody):
    """Result of a leased request. `new_job_id`: for a submission; absent for a requeue of the same job."""

    lease_token: Token
    result: AckResult
    new_job_id: Key | None = None
    detail: Detail | None = None


class Fail(_RequestBody):
    """Failure of a hook. With `retry_after_s` the request is leased again then or later; without it, it ends."""

    lease_token: Token
    error: Detail
    retry_after_s: Annotated[float, Field(ge=0, le=86_400)] | None = None


class Stop(_RequestBody):
    """The reason for stopping automation."""

    reason: Annotated[str, Field(max_length=500)] | None = None


class Comment(_RequestBody):
    """A comment on an action."""

    comment: Annotated[str, Field(max_length=2_000)] | None = None


class IncidentRequest(_RequestBody):
    """A new incident: a kind of shared resource and its name, such as file_system and /scratch."""

    cluster: Key
    kind: IncidentKind
    value: Key
    comment: Annotated[str, Field(max_length=2_000)] | None = None


class RequestsPage(BaseModel):
    """One page of requests, newest first."""

    items: list[Request]
    next_cursor: str | None


class IncidentsPage(BaseModel):
    """One page of incidents, newest first."""

    items: list[Incident]
    next_cursor: str | None


class IncidentAnswer(BaseModel):
    """One incident with its failed attempts (`jobs`, the newest first), its history, and counts of all members."""

    incident: Incident
    jobs: list[IncidentJob]
    notes: list[IncidentNote]
    counts: MemberCounts


class Storm(BaseModel):
    """A key (cause, cluster, resource) whose resubmissions are held by the retry-storm limit."""

    key: str
    held_since: datetime
    reason: str
    trial: bool = Field(description="one trial was released since then, and its outcome is not known yet")


class AutomationAnswer(BaseModel):
    """Kill switch, requests by state, held storms and success rates."""

    switch: Switch
    policy: str
    counts: dict[RequestState, int]
    storms: list[Storm]
    rates: list[Rate]
