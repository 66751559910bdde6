"""POST /policy:replay: what another policy would have commented_action over the stored decisions."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from service.automation import decision_records
from service.errors import ConfigurationError, InvalidInput
from service.recommend import policy, replay, replay_report
from service.web.auth import ACT
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["policy"])
NAME = "policy"
SPAN = timedelta(days=28)


class ReplayRequest(BaseModel):
    """The policy as its file has it (TOML), laid over the built-in one, and how far back it is body.

    Of more than `failures` failures the newest are asked about; the command `faultline policy replay` takes them all.
    """

    model_config = ConfigDict(extra="forbid")

    policy: Annotated[str, Field(max_length=200_000)]
    since: AwareDatetime | None = Field(default=None, description="default: 28 days ago")
    failures: Annotated[int, Field(ge=1, le=200_000)] = 50_000


class More(BaseModel):
    """Resubmits more and fewer."""

    more: int
    fewer: int


class GpuHours(BaseModel):
    """GPU-hours of runs whose end was recorded: saved where they failed, lost where they helped."""

    saved: float
    lost: float


class Known(BaseModel):
    """Resubmits fewer whose end was recorded."""

    failed_avoided: int
    helped_lost: int


class Kind(BaseModel):
    """How often one decision becomes another."""

    before: str
    after: str
    count: int


class OfCause(BaseModel):
    """How many resubmits more or fewer a cause gets."""

    cause: str
    resubmits: Literal["more", "fewer"]
    count: int


class ChangedDecision(BaseModel):
    """One decision that changes, with the other policy's reasons."""

    failure_id: int
    at: datetime
    cluster: str
    cause: str
    before: str
    after: str
    outcome: str | None
    gpu_hours: float | None
    reasons: list[str]


class ReplayAnswer(BaseModel):
    """What changes. How resubmits that nobody made would have ended is unknown, and never guessed."""

    policy: str
    asked: int
    changed: int
    resubmits: More
    gpu_hours: GpuHours
    known: Known
    unknown: More
    since: datetime | None
    until: datetime | None
    kinds: list[Kind]
    causes: list[OfCause]
    items: list[ChangedDecision]


@router.post("/policy:replay", dependencies=[ACT], responses=answers(401, 403, 422, 503))
def replay_policy(services: InjectedServices, body: ReplayRequest) -> ReplayAnswer:
    """Ask another policy about the decisions of the last weeks, with verdicts and facts as they were known then."""
    try:
        other = policy.parse(body.policy, NAME)
    except ConfigurationError as error:
        raise InvalidInput(error.detail, error.errors) from None
    since = body.since or services.clock.now() - SPAN
    with services.store.reading() as reading:
        span = reading.decision_history.span(since)
        found = replay.ReplayComparison(other.version)
        if span is not None:
            low = max(span[0], span[1] - body.failures + 1)
            stored = reading.decision_history.read(low, span[1], since)
            found = replay.compare(decision_records.past_decisions(stored), other)
    return ReplayAnswer.model_validate(replay_report.as_json(found))
