"""GET and POST /labels: labelled-case/1 lines, the input format of `faultline train --add`."""

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, cast

import orjson
from fastapi import APIRouter, Query, Request

from service.feedback import label_export
from service.web import event_intake, export
from service.web.auth import LABELS, READ, Principal
from service.web.error_responses import answers
from service.web.group_requests import ImportAnswer
from service.web.limits import request_body
from service.web.security_events import record
from service.web.services import InjectedServices

router = APIRouter(tags=["feedback"])


class Lines(export.StreamedFile):
    """JSON lines."""

    media_type = "application/x-ndjson"


_BODY = {
    "requestBody": {
        "required": True,
        "description": "labelled-case/1 lines (GET /api/v1/schemas/labelled-case/1), at most 16 MiB and 100,000 lines.",
        "content": {"application/x-ndjson": {"schema": {"type": "string"}}, "application/json": {"schema": {}}},
    }
}


@router.get("/labels", response_class=Lines, responses=answers(401, 403, 422, 429, 503))
def get_labels(
    request: Request,
    services: InjectedServices,
    principal: Annotated[Principal, READ],
    golden: Annotated[bool | None, Query(description="true: only the golden set; else: only other labels")] = None,
) -> Lines:
    """All labels of stored failures, redacted, newest first, without those that wait for a person."""
    services.action_limits.exports.check(principal.sender, "exports of yours in a minute")
    record(services, "export", request, principal.name, "labels")
    found = label_export.cases(services.store, golden=golden is True)
    first = next(
        found, None
    )  # before the answer begins: a database that does not answer is an error, not an empty file
    return Lines(
        (orjson.dumps(case) + b"\n" for case in ([] if first is None else chain((first,), found))),
        headers={"Content-Disposition": 'attachment; filename="labels.jsonl"'},
    )


@router.post("/labels", openapi_extra=_BODY, responses=answers(401, 403, 413, 415, 422, 429, 503))
async def post_labels(
    request: Request, services: InjectedServices, principal: Annotated[Principal, LABELS]
) -> ImportAnswer:
    """Import labels for failures of the same jobs, in the caller's name; an invalid line rejects only itself."""
    async with request_body.body_of(request) as content:
        if content.count(b"\n") > event_intake.MAX_LINES:
            raise event_intake.too_many_lines()

        def lines() -> Iterator[tuple[str, Any]]:
            for number, line in enumerate(content.split(b"\n"), 1):
                if line.strip():
                    try:
                        yield f"line {number}", orjson.loads(line)
                    except orjson.JSONDecodeError:
                        yield f"line {number}", None

        turns = cast("request_body.IntakeTurns", request.app.state.intake_turns)
        done = await turns.run(
            principal.sender,
            lambda: label_export.import_labels(
                services.store, services.feedback, lines(), actor=principal.name, visible=principal.visible
            ),
        )
        return ImportAnswer(
            taken=done.taken, waiting=done.waiting, elsewhere=list(done.elsewhere), wrong=list(done.wrong)
        )
