"""GET /audit-log: who changed what, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from service.people.repository.audit_log import AuditEntry
from service.web.api.parameters import Limit, Text
from service.web.auth import ADMIN
from service.web.error_responses import answers
from service.web.services import InjectedServices

router = APIRouter(tags=["audit log"])
Position = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the previous page")]


class AuditLogPage(BaseModel):
    """One page of the audit log."""

    items: list[AuditEntry]
    next_cursor: str | None


@router.get("/audit-log", dependencies=[ADMIN], responses=answers(401, 403, 422, 503))
def get_audit_log(
    services: InjectedServices, subject: Text = None, limit: Limit = 50, cursor: Position = None
) -> AuditLogPage:
    """Changes by people, tokens and the service, newest first; of one `subject` (such as failure/12) or of all."""
    with services.reading() as reading:
        page = reading.audit_log.page(limit=limit, cursor=cursor, subject=(subject or "").strip() or None)
    return AuditLogPage(items=list(page.items), next_cursor=page.next_cursor)
