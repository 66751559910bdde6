"""Events that matter to security: a line of JSON in the log, a metric, and for those of known people the audit log.

Refused requests of strangers are not stored, so that they can't fill the database; the log and the metric count them.
"""

import logging
from contextlib import suppress
from typing import Any

import orjson
from fastapi import Request

from service.errors import Unavailable
from service.people.records import Client
from service.people.repository.audit_log import AuditFilter
from service.web.services import Services

log = logging.getLogger("faultline.security")

MAX_KNOWN_ADDRESSES = 10_000


def address_of(request: Request) -> str:
    """The address of the client, as a trusted proxy reports it."""
    return request.client.host if request.client is not None else ""


def client_of(request: Request) -> Client:
    """The address of the client, and the browser or program as it names itself, for a new session."""
    return Client(address_of(request), request.headers.get("user-agent", ""))


def notice(services: Services, event: str, request: Request, **details: Any) -> None:
    """Log and count an event.

    Args:
        services: the services of the application.
        event: its kind, such as `login.failed`.
        request: the request that it belongs to.
        details: further values; never a secret.
    """
    services.telemetry.security_events.labels(event).inc()
    record = {"event": event, "address": address_of(request), "path": request.url.path[:200], **details}
    log.info("%s", orjson.dumps(record, default=str).decode())


def refused(services: Services, event: str, request: Request) -> None:
    """Log and count a refused request; if the caller is known, with the name, and some of each minute are stored."""
    caller = getattr(request.state, "identified", None)  # by the request gate
    if caller is None:
        notice(services, event, request)
    elif services.stored_refusals.exceeded(caller.sender) is None:
        record(services, event, request, caller.name, request.url.path[:200])
    else:
        notice(services, event, request, who=caller.name)


def record(services: Services, event: str, request: Request, actor: str, subject: str, **details: Any) -> None:
    """Log and count an event, and add it to the audit log; a busy database does not refuse the request for it."""
    notice(services, event, request, who=actor, subject=subject, **details)
    with suppress(Unavailable), services.store.unit_of_work() as work:
        work.audit_log.append(actor, event, subject, after={"address": address_of(request), **details})


def record_token_address(services: Services, request: Request, name: str) -> None:
    """Record the first use of a token from an address."""
    address = address_of(request)
    known = services.token_addresses
    if (name, address) in known:
        return
    subject = f"token/{name}"
    with services.store.reading() as reading:
        entries = reading.audit_log.page(limit=500, wanted=AuditFilter(subject)).items
    seen = {one.after.get("address") for one in entries if one.what == "token.address" and isinstance(one.after, dict)}
    if address not in seen:  # who has a network of IPv6 has addresses without end
        if services.stored_refusals.exceeded(subject) is None:
            record(services, "token.address", request, name, subject)
        else:
            notice(services, "token.address", request, who=name)
    if len(known) >= MAX_KNOWN_ADDRESSES:
        known.clear()
    known.add((name, address))
