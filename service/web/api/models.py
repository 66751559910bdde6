"""The shapes of answers that are not the store's own records."""

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
    """A verdict with the failure it is stored under."""

    failure_id: int


class EventsAnswer(BaseModel):
    """What became of the events of one request, after the commit."""

    accepted: int
    duplicates: int = Field(description="stored before, whatever their content")
    conflicts: int = Field(description="of the duplicates: same id, other content; what was stored first stays")
    skipped: int = Field(description="records that are no job's end")
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
    """One version of a verdict; null `body`: removed by retention."""

    version: int
    at: datetime
    source: Literal["machine", "person"]
    model: str
    rules: str
    policy: str
    body: VerdictBody | None


class Stream(BaseModel):
    """One log stream as read; `text` only with ?logs=true."""

    rank: int | None
    node: str | None
    stream: str
    first_line: int | None
    characters: int
    missing: str | None
    text: str | None = None


class Logs(BaseModel):
    """What is kept of one diagnosed attempt: its event (job-completion/1 without tails) and its streams."""

    attempt_id: int
    event: Mapping[str, Any]
    streams: list[Stream]


class FailureAnswer(BaseModel):
    """One failure: the list's line, the current verdict, its versions (newest first), logs and attempts."""

    failure: FailureRow
    verdict: VerdictBody | None
    versions: list[Version]
    logs: list[Logs]
    attempts: list[Attempt]


class StatsAnswer(BaseModel):
    """Counts and rates, and how far they can be trusted."""

    stats: Stats
    pipeline: Pipeline


class SchemaNames(BaseModel):
    """The schemas that are published."""

    items: list[str]


class Alive(BaseModel):
    """The process answers."""

    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    """Events can be taken and pages shown."""

    status: Literal["ready"] = "ready"
    database: Literal["sqlite", "postgresql"]
    model: str
