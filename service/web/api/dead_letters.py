"""GET /dead-letters and resending a dead letter."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from service.dead_letters.records import StoredDeadLetter
from service.web import resending, views
from service.web.api.parameters import Cursor, Id, Limit
from service.web.auth import ACT, READ, Principal
from service.web.error_responses import answers
from service.web.resending import Resent
from service.web.services import InjectedServices

router = APIRouter(tags=["dead letters"])


class DeadLettersPage(BaseModel):
    """One page of dead letters."""

    items: list[StoredDeadLetter]
    next_cursor: str | None


@router.get("/dead-letters", dependencies=[READ], responses=answers(401, 403, 422, 503))
def get_dead_letters(services: InjectedServices, limit: Limit = 50, cursor: Cursor = None) -> DeadLettersPage:
    """Records that could not be read, newest first; `text` is redacted and truncated to 64 Ki characters."""
    page = views.dead_letters(services, limit=limit, cursor=cursor)
    return DeadLettersPage(items=list(page.items), next_cursor=page.next_cursor)


@router.post("/dead-letters/{letter_id}:resend", responses=answers(401, 403, 404, 409, 422, 503))
def resend_dead_letter(
    services: InjectedServices,
    principal: Annotated[Principal, ACT],
    letter_id: Id,
    cluster: Annotated[
        str | None, Query(min_length=1, max_length=200, description="the cluster of a record that names none")
    ] = None,
) -> Resent:
    """Parse the stored text again and handle it as an event; 409 if it still cannot be read."""
    return resending.resend(services, letter_id, principal.name, cluster=cluster)
