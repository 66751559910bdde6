"""POST /node-events: intake of events of nodes, devices and node agents."""

from collections.abc import Mapping
from typing import Annotated, cast

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from service.dead_letters.records import DeadLetter
from service.errors import FieldError, Forbidden, TooLarge, UnreadableRecord
from service.formats import node_events
from service.formats.field_reading import Skipped
from service.messaging import batching
from service.messaging.dead_letters import dead_letter
from service.nodes.records import KnownPlace, NewNodeEvent, NodeReport
from service.people.api_tokens import Binding
from service.web import event_intake
from service.web.auth import INGEST, Principal
from service.web.error_responses import answers
from service.web.event_intake import Rejection
from service.web.limits import request_body
from service.web.services import InjectedServices, Services

router = APIRouter(tags=["nodes"])
BATCH = 500  # lines per transaction
PLACES_MOST = 100_000  # of one request; a short list of nodes may stand for many

_BODY = {
    "requestBody": {
        "required": True,
        "description": "One record or JSON lines, at most 16 MiB: node-event/1 (GET /api/v1/schemas/node-event/1), "
        "CloudEvents, Kubernetes Events of Nodes and Nodes, DCGM health and policy violations, journald's JSON, "
        "syslog lines as text, lines of `scontrol show topology` and `scontrol show node -o`, or Slurm's topology.yaml "
        "(at most 1 MiB).",
        "content": {
            "application/json": {"schema": {}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "text/plain": {"schema": {"type": "string"}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}


class NodeEventsAnswer(BaseModel):
    """Result of one request, after the commit. One record may contain several events."""

    accepted: int = Field(description="new events, and nodes whose place was changed")
    duplicates: int = Field(description="stored before, or the place of a node on which no job has ended yet")
    skipped: int = Field(description="records that are not about a node, or name no place")
    rejected: list[Rejection]


@router.post("/node-events", openapi_extra=_BODY, responses=answers(401, 403, 413, 415, 422, 429, 503))
async def post_node_events(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, INGEST],
    cluster: Annotated[
        str | None, Query(min_length=1, max_length=200, description="the cluster of records that name none")
    ] = None,
) -> NodeEventsAnswer:
    """Store node events; responds after the commit. An invalid line rejects only itself; duplicates change nothing."""
    if principal.binding.teams:
        raise Forbidden("a token of some teams may not send node events, because nodes belong to all teams")
    async with request_body.body_of(request) as content:
        headers = dict(request.headers)
        turns = cast("request_body.IntakeTurns", request.app.state.intake_turns)
        return await turns.run(
            principal.sender,
            lambda: submit(services, content, headers, cluster=cluster, binding=principal.binding),
        )


def submit(
    services: Services,
    content: bytes,
    headers: Mapping[str, str],
    *,
    cluster: str | None = None,
    binding: Binding | None = None,
) -> NodeEventsAnswer:
    """Store the node events of a body.

    Raises:
        TooLarge: too many lines; nothing was stored.
        Unavailable: the database does not answer; the same body can be sent again.
    """
    attributes = event_intake.cloud_event_headers(headers)
    records = [(1, content)] if attributes else lines_of(content)
    answer = NodeEventsAnswer(accepted=0, duplicates=0, skipped=0, rejected=[])
    named = 0
    for start in range(0, len(records), BATCH):
        events: list[NewNodeEvent] = []
        places: list[KnownPlace] = []
        dead: list[DeadLetter] = []
        for number, raw in records[start : start + BATCH]:
            read = batching.read(node_events.parse, raw, attributes, cluster=cluster, source="api")
            found = _permitted(read, binding or Binding(), named)
            if isinstance(found, UnreadableRecord):
                first = found.errors[0] if found.errors else FieldError("(whole record)", found.reason)
                answer.rejected.append(Rejection(number, first.field, first.expected, first.got))
                dead.append(dead_letter(raw, f"{event_intake.NODE_PLACE} line {number}", found, services.clock.now()))
            elif isinstance(found, Skipped):
                answer.skipped += 1
            else:
                events.extend(found.events)
                places.extend(found.places)
                named += len(found.places)
        taken = services.node_event_intake.take(events, dead, places=places)
        answer.accepted += taken.accepted
        answer.duplicates += taken.duplicates
    return answer


def _permitted(
    found: NodeReport | Skipped | UnreadableRecord, binding: Binding, named: int
) -> NodeReport | Skipped | UnreadableRecord:
    """What was read; an error if the token is not for its cluster, or if the request names too many places.

    `named` is the number of places in the request before it.
    """
    if not isinstance(found, NodeReport):
        return found
    if named + len(found.places) > PLACES_MOST:
        expected = f"at most {PLACES_MOST} nodes in one request"
        return UnreadableRecord(f"Nodes: expected {expected}", (FieldError("Nodes", expected),))
    clusters = dict.fromkeys([*(one.cluster for one in found.events), *(one.cluster for one in found.places)])
    other = next((one for one in clusters if not binding.allows(one)), None)
    if other is not None:
        expected = f"a cluster of this token: {', '.join(binding.clusters)}"
        return UnreadableRecord("the token may not send for this cluster", (FieldError("cluster", expected, other),))
    return found


def lines_of(content: bytes) -> list[tuple[int, bytes]]:
    """The records of a body with their line numbers: JSON as in events, a whole topology.yaml, other text line by line.

    Raises:
        TooLarge: too many lines.
    """
    if content.lstrip()[:1] in {b"{", b""}:
        return event_intake.lines_of(content)
    if node_events.is_whole(content):
        return [(1, content)]
    if content.count(b"\n") > event_intake.MAX_LINES:
        expected = f"at most {event_intake.MAX_LINES} lines"
        raise TooLarge(f"the body: expected {expected}", (FieldError("(body)", expected),))
    return [(number, line) for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]
