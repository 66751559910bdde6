"""Outbox messages about requests and incidents, added in the transaction that changes them."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from service.deliveries.records import OutboxMessage
from service.incidents.records import Incident
from service.resubmissions.records import Request

MessageKind = Literal[
    "resubmission.requested",
    "resubmission.done",
    "resubmission.suppressed",
    "resubmission.succeeded",
    "resubmission.failed",
    "resubmission.demoted",
    "incident.opened",
    "incident.closed",
]


def of_request(kind: MessageKind, request: Request, why: str | None = None) -> OutboxMessage:
    """The message about one request; `why` is the reason as text."""
    return OutboxMessage(
        kind,
        f"{request.cluster}/{request.job_id}",
        {
            "failure_id": request.failure_id,
            "why": why,
            "request": request_to_wire(request),
            "verdict": {
                "cluster": request.cluster,
                "job_id": request.job_id,
                "attempt": request.attempt,
                "side": request.side,
                "cause": request.cause,
            },
        },
    )


def of_requests(kind: MessageKind, requests: Iterable[Request], why: str | None = None) -> list[OutboxMessage]:
    """The messages about several requests."""
    return [of_request(kind, one, why) for one in requests]


def of_incident(kind: MessageKind, incident: Incident, why: str | None = None) -> OutboxMessage:
    """The message that an incident was opened or closed."""
    return OutboxMessage(
        kind,
        f"{incident.cluster}/incident/{incident.id}",
        {
            "why": why,
            "incident": {
                "id": incident.id,
                "title": incident.title,
                "kind": incident.kind,
                "value": incident.value,
                "cluster": incident.cluster,
                "cause": incident.cause,
                "jobs": incident.jobs,
                "users": incident.users,
                "opened_at": incident.opened_at.isoformat(),
                "closed_at": None if incident.closed_at is None else incident.closed_at.isoformat(),
            },
            "verdict": {"cluster": incident.cluster, "cause": incident.cause},
        },
    )


def of_demotion(cluster: str, cause: str, plan: str, policy: str, tally: Mapping[str, Any]) -> OutboxMessage:
    """The message that resubmits of this kind are advice only from now on."""
    return OutboxMessage(
        "resubmission.demoted",
        f"{cluster}/{cause}/{plan}",
        {
            "cause": cause,
            "plan": plan,
            "policy": policy,
            **tally,
            "verdict": {"cluster": cluster, "cause": cause},
        },
    )


def request_to_wire(request: Request) -> dict[str, Any]:
    """A request as JSON data of a message."""
    return {
        "request_id": request.request_id,
        "state": request.state,
        "action": request.action,
        "exclude_nodes": list(request.exclude_nodes),
        "not_before": request.not_before.isoformat(),
        "held_by": request.held_by,
        "incident_id": request.incident_id,
        "result": request.result,
        "new_job_id": request.new_job_id,
        "outcome": request.outcome,
        "retracted": request.retracted,
        "detail": request.detail,
        "origin": request.origin,
        "user": request.user,
    }
