"""Response models that are not stored records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from service.contracts.verdict import VerdictBody
from service.dead_letters.records import StoredDeadLetter
from service.failures.records import FailureRow
from service.jobs.records import Attempt
from service.statistics.records import Stats
from service.web.event_intake import Rejection
from service.web.views import Pipeline

Line = Annotated[int, Field(ge=1)]


class VerdictOfFailure(VerdictBody):
    """A verdict with the id of its failure."""

    failure_id: int


class EventsAnswer(BaseModel):
    """Result of the events of one request, after the commit."""

    accepted: int
    duplicates: int = Field(description="stored before, with any content")
    conflicts: int = Field(description="duplicates with different content; the first one is kept")
    skipped: int = Field(description="records that are not the end of a job")
    rejected: list[Rejection]
    ids: list[str] = Field(description="the event id of each event, in order, duplicates included")
    verdicts: list[VerdictOfFailure] | None = Field(default=None, description="with ?wait=verdict")


class FailuresPage(BaseModel):
    """One page of failures."""

    items: list[FailureRow]
    next_cursor: str | None


class DeadLettersPage(BaseModel):
    """One page of dead letters."""

    items: list[StoredDeadLetter]
    next_cursor: str | None


class Version(BaseModel):
    """One version of a verdict; `body` is null if retention removed it."""

    version: int
    at: datetime
    source: Literal["machine", "person"]
    model: str
    rules: str
    policy: str
    body: VerdictBody | None


class Stream(BaseModel):
    """One log stream; `text` only with ?logs=true."""

    rank: int | None
    node: str | None
    stream: str
    first_line: int | None
    characters: int
    missing: str | None
    text: str | None = None


class Logs(BaseModel):
    """Stored data of one diagnosed attempt: its event (job-completion/1 without log tails) and its log streams."""

    attempt_id: int
    event: Mapping[str, Any]
    streams: list[Stream]


class FailureAnswer(BaseModel):
    """One failure: its row, the current verdict, all versions (newest first), logs and attempts."""

    failure: FailureRow
    verdict: VerdictBody | None
    versions: list[Version]
    logs: list[Logs]
    attempts: list[Attempt]


class StatsAnswer(BaseModel):
    """Counts and rates, and health of the pipeline."""

    stats: Stats
    pipeline: Pipeline


class SchemaNames(BaseModel):
    """The published schemas; always one page."""

    items: list[str]
    next_cursor: None = None


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """Events are accepted and pages are served."""

    status: Literal["ready"] = "ready"
    database: Literal["sqlite", "postgresql"]
    model: str
