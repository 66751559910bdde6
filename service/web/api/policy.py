"""POST /policy:replay: decisions of another policy over the stored history."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, BaseModel, Field

from service.automation import decision_records
from service.errors import ConfigurationError, FieldError, InvalidInput
from service.recommend import policy, replay, replay_report
from service.web.api.parameters import RequestBody
from service.web.auth import ACT, Principal
from service.web.error_responses import answers
from service.web.services import InjectedServices, Services

router = APIRouter(tags=["policy"])
NAME = "policy"
SPAN = timedelta(days=28)


class ReplayRequest(RequestBody):
    """A policy file (TOML) that overrides the built-in policy, and the period to replay.

    At most the newest `failures` failures are replayed; the command `faultline policy replay` replays all of them.
    """

    policy: Annotated[str, Field(max_length=200_000)]
    since: AwareDatetime | None = Field(default=None, description="default: 28 days ago")
    failures: Annotated[int, Field(ge=1, le=200_000)] = 50_000


class More(BaseModel):
    """Additional and omitted resubmissions."""

    more: int
    fewer: int


class GpuHours(BaseModel):
    """GPU-hours of omitted resubmissions with a known outcome: saved if they failed, lost if they had rescued any."""

    saved: float
    lost: float


class Known(BaseModel):
    """Omitted resubmissions with a known outcome."""

    failed_avoided: int
    helped_lost: int


class Kind(BaseModel):
    """How often one decision changes to another."""

    before: str
    after: str
    count: int


class OfCause(BaseModel):
    """Additional or omitted resubmissions of a cause."""

    cause: str
    resubmits: Literal["more", "fewer"]
    count: int


class Limit(BaseModel):
    """How many resubmissions a limit of the other policy holds or stops."""

    rule: str
    count: int


class ChangedDecision(BaseModel):
    """One changed decision, with the deciding rule of the other policy, its reason, and the reasons of all rules."""

    failure_id: int
    at: datetime
    cluster: str
    cause: str
    before: str
    after: str
    outcome: str | None
    gpu_hours: float | None
    reasons: list[str]
    rule: str
    reason: str


class ReplayAnswer(BaseModel):
    """The changed decisions. Outcomes of resubmissions that never happened are unknown and are not estimated."""

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
    limits: list[Limit]
    items: list[ChangedDecision]


@router.post("/policy:replay", responses=answers(401, 403, 422, 429, 503))
def replay_policy(
    services: InjectedServices, principal: Annotated[Principal, ACT], body: ReplayRequest
) -> ReplayAnswer:
    """Replay recent decisions with another policy, using the verdicts and facts known at the time.

    Two replays run at one time, one of a caller.
    """
    with services.replays.one_of(principal.sender):
        return _replayed(services, body)


def _replayed(services: Services, body: ReplayRequest) -> ReplayAnswer:
    try:
        other = policy.parse(body.policy, NAME)
    except ConfigurationError as error:
        raise InvalidInput(error.detail, error.errors or (FieldError(NAME, "a policy file in TOML"),)) from None
    since = body.since or services.clock.now() - SPAN
    with services.reading() as reading:
        span = reading.decision_history.span(since)
        found = replay.ReplayComparison(other.version)
        if span is not None:
            low = max(span[0], span[1] - body.failures + 1)
            stored = reading.decision_history.read(low, span[1], since)
            found = replay.compare(decision_records.past_decisions(stored), other)
    return ReplayAnswer.model_validate(replay_report.as_json(found))
