"""GET /audit-log: who changed what, for administrators."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from service.people.repository.audit_log import AuditEntry, AuditFilter
from service.web.api.parameters import Limit, Text
from service.web.auth import ADMIN
from service.web.error_responses import answers
from service.web.services import InjectedServices, Services
from service.web.url_times import When, instant
from service.web.views import given_texts

router = APIRouter(tags=["audit log"])
Position = Annotated[str | None, Query(pattern=r"^[0-9]{1,18}$", description="`next_cursor` of the previous page")]


RecordedSince = Annotated[When | None, Query(description="recorded at or after")]
RecordedUntil = Annotated[When | None, Query(description="recorded before")]


class AuditLogPage(BaseModel):
    """One page of the audit log."""

    items: list[AuditEntry]
    next_cursor: str | None


@router.get("/audit-log", dependencies=[ADMIN], responses=answers(401, 403, 422, 503))
def get_audit_log(
    services: InjectedServices,
    subject: Text = None,
    who: Text = None,
    what: Text = None,
    since: RecordedSince = None,
    until: RecordedUntil = None,
    limit: Limit = 50,
    cursor: Position = None,
) -> AuditLogPage:
    """Changes by people, tokens and the service, newest first; `subject` is such as failure/12, `what` login."""
    wanted = audit_filter(services, subject=subject, who=who, what=what, since=since, until=until)
    with services.reading() as reading:
        page = reading.audit_log.page(limit=limit, cursor=cursor, wanted=wanted)
    return AuditLogPage(items=list(page.items), next_cursor=page.next_cursor)


def audit_filter(
    services: Services, *, subject: str | None, who: str | None, what: str | None, since: str | None, until: str | None
) -> AuditFilter:
    """The filter of these parameters of a URL; empty ones count as absent.

    Raises:
        InvalidInput: a time is not one.
    """
    now, zone = services.clock.now(), services.zone
    texts = given_texts({"subject": subject, "who": who, "what": what})
    return AuditFilter(
        subject=texts.get("subject"),
        who=texts.get("who"),
        what=texts.get("what"),
        since=instant(since, "since", now, zone) if since else None,
        until=instant(until, "until", now, zone) if until else None,
    )
