"""POST /events: intake of events from hooks, epilog scripts and people."""

from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from service.contracts.verdict import VerdictBody
from service.formats.recognise import EXPECTED
from service.web import event_intake
from service.web.auth import INGEST, Principal
from service.web.error_responses import answers
from service.web.event_intake import Rejection
from service.web.limits import request_body
from service.web.services import InjectedServices, Services

router = APIRouter(tags=["events"])

_BODY = {
    "requestBody": {
        "required": True,
        "description": "One record or JSON lines, at most 16 MiB (also decompressed), each "
        f"{EXPECTED}. JSON Schema of job-completion/1: GET /api/v1/schemas/job-completion-1.",
        "content": {"application/json": {"schema": {}}, "application/x-ndjson": {"schema": {"type": "string"}}},
    }
}


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


@router.post("/events", openapi_extra=_BODY, responses=answers(401, 403, 413, 415, 422, 429, 503))
async def post_events(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, INGEST],
    wait: Annotated[
        Literal["verdict"] | None, Query(description="verdict: include the verdicts of these events in the response")
    ] = None,
    cluster: Annotated[
        str | None, Query(min_length=1, max_length=200, description="the cluster of records that name none")
    ] = None,
) -> EventsAnswer:
    """Store and diagnose job completions; responds after the commit. An invalid line rejects only itself.

    Sending the same events again changes nothing: they count as duplicates.
    """
    async with request_body.body_of(request) as content:
        headers = dict(request.headers)
        sender = event_intake.Sender(principal.name, principal.binding)
        turns = cast("request_body.IntakeTurns", request.app.state.intake_turns)
        return await turns.run(
            principal.sender,
            lambda: _handle(services, content, headers, cluster, sender, verdicts=wait == "verdict"),
        )


def _handle(
    services: Services,
    content: bytes,
    headers: dict[str, str],
    cluster: str | None,
    sender: event_intake.Sender,
    *,
    verdicts: bool,
) -> EventsAnswer:
    done = event_intake.submit(services, content, headers, cluster=cluster, sender=sender)
    return EventsAnswer.model_validate(
        {
            "accepted": done.accepted,
            "duplicates": done.duplicates,
            "conflicts": done.conflicts,
            "skipped": done.skipped,
            "rejected": done.rejected,
            "ids": done.ids,
            "verdicts": event_intake.verdicts(services, done.failures) if verdicts else None,
        }
    )
