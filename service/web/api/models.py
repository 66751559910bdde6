"""The shapes of answers that are not the store's own records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from classifiers.taxonomy import Decision, PlatformSymptom, RetryOutlook, Role, Side
from service.dead_letters.records import StoredDeadLetter
from service.failures.records import FailureRow
from service.jobs.records import Attempt
from service.statistics.records import Stats
from service.web.event_intake import Rejection
from service.web.views import Pipeline

Line = Annotated[int, Field(ge=1)]


class EvidenceLine(BaseModel):
    """One line that speaks for a verdict; `line` is 1-based in what was read, null if unknown."""

    rank: int | None = None
    node: str | None = None
    stream: str
    line: int | None = None
    text: str
    role: Role
    signature: str | None = None


class SuspectPart(BaseModel):
    """Where the failure most likely began."""

    rank: int | None = None
    node: str | None = None
    gpu: int | None = None


class ProgressMade(BaseModel):
    """The last step and checkpoint that the logs show."""

    step: int | None = None
    checkpoint: str | None = None
    at: datetime | None = None


class MitigationAdvised(BaseModel):
    """One of the ten mitigations, made concrete; `score` is a probability."""

    code: str
    score: float
    text: str


class ContextSaid(BaseModel):
    """One thing that the fleet says of a failure, for (`weight` > 0) or against a side, in nats of log odds."""

    kind: str
    text: str
    side: Side
    weight: float
    cause: str | None = None
    node: str | None = None
    at: datetime | None = None
    gpu: int | None = None


class LogSaidPart(BaseModel):
    """What the log and the scheduler said before the fleet was heard."""

    side: Side
    cause: str
    cause_top: list[str]
    confidence: float
    abstained: bool
    retry_outlook: RetryOutlook
    explanation: str
    suspect: SuspectPart | None = None


class VerdictBody(BaseModel):
    """verdict/1: what classification and the built-in policy say of one failure."""

    model_config = ConfigDict(extra="allow", title="verdict/1")

    schema_: Literal["verdict/1"] = Field(alias="schema")
    event_id: str
    cluster: str
    job_id: str
    attempt: int | None
    side: Side
    cause: str
    cause_top: list[str]
    category: str | None
    symptom: str | None
    symptom_top: list[str]
    platform_symptom: PlatformSymptom
    confidence: float = Field(ge=0, le=1, description="of the side")
    abstained: bool
    evidence: list[EvidenceLine]
    suspect: SuspectPart | None
    missing: list[str]
    progress: ProgressMade | None
    fingerprint: str
    mitigations: list[MitigationAdvised]
    decision: Decision
    resubmit: bool
    reasons: list[str]
    exclude_nodes: list[str]
    policy: str
    retry_outlook: RetryOutlook
    explanation: str
    weighed: list[tuple[str, float]]
    model: str
    rules: str
    disputed: bool = Field(default=False, description="the log and the nodes disagree, both strongly")
    context: list[ContextSaid] = Field(default_factory=list, description="what nodes and other failures say")
    log_said: LogSaidPart | None = Field(default=None, description="null: the fleet had nothing to add")


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
