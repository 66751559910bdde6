"""Conversion between rows of the table `requests` and their records."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import Row, literal_column

from service.errors import damage_translated
from service.resubmissions.records import OPEN_STATES, NewRequest, Request, StoredRequest
from service.sql.packing import pack, unpack
from service.sql.types import short, utc

DETAIL_CHARACTERS = 1_000
# Written as literals: a partial index cannot be used for bound parameters.
OPEN = literal_column("state").in_([literal_column(f"'{state}'") for state in OPEN_STATES])
_PREFIX = "r"


def request_of(row: Row[Any]) -> Request:
    """The public record of a row."""
    return Request(**_request_fields(row._mapping))  # noqa: SLF001 - the documented access to a row as a mapping


@damage_translated()
def stored_request_of(row: Row[Any]) -> StoredRequest:
    """The record of a row with the columns that the automation reads."""
    return StoredRequest(
        **_request_fields(row._mapping),  # noqa: SLF001 - the documented access to a row as a mapping
        id=row.id,
        attempt_id=row.attempt_id,
        resource=row.resource,
        keys=tuple(orjson.loads(row.fold_keys)),
        ask_scheduler=row.ask_scheduler,
        started_at=row.started_at,
        lease_token=row.lease_token,
        leased_at=row.leased_at,
    )


def inserted_request(values: Mapping[str, Any]) -> Request:
    """The public record of a row that was inserted with these column values."""
    return Request(**_request_fields(values))


@damage_translated()
def _request_fields(row: Mapping[Any, Any]) -> dict[str, Any]:
    body = unpack(row["body"])
    fields = {name: row.get(name) for name in _SAME_NAME}
    return fields | {
        "request_id": row["public_id"],
        "user": row["user_name"],
        "action": row["kind"],
        "exclude_nodes": tuple(body["exclude_nodes"]),
        "resume_from": body["resume_from"],
        "changes": body["changes"],
        "reasons": tuple(body["reasons"]),
    }


_SAME_NAME = (
    *("failure_id", "verdict_version", "cluster", "job_id", "attempt", "team", "queue", "gpus", "lineage", "side"),
    *("cause", "state", "origin", "plan", "policy", "created_at", "not_before", "expires_at", "held_by"),
    *("incident_id", "asked_by", "leased_by", "leased_until", "leases", "tries", "ended_at", "result", "detail"),
    *("new_job_id", "retracted", "outcome", "outcome_at", "outcome_failure_id"),
)


def new_request_id() -> str:
    """A public request id: 20 random hexadecimal digits, unique across installations."""
    return _PREFIX + secrets.token_hex(10)


def insert_values(request: NewRequest, now: datetime) -> dict[str, Any]:
    """The column values of a new request."""
    body = {
        "exclude_nodes": request.exclude_nodes,
        "resume_from": request.resume_from,
        "changes": dict(request.changes),
        "reasons": request.reasons,
    }
    return {
        "public_id": new_request_id(),
        "failure_id": request.failure_id,
        "attempt_id": request.attempt_id,
        "verdict_version": request.verdict_version,
        "cluster": short(request.cluster),
        "job_id": short(request.job_id),
        "attempt": request.attempt,
        "user_name": short(request.user),
        "team": short(request.team),
        "queue": short(request.queue),
        "gpus": request.gpus,
        "gpu_hours": request.gpu_hours,
        "lineage": request.lineage,
        "side": request.side,
        "cause": request.cause,
        "fingerprint": short(request.fingerprint),
        "resource": short(request.resource, 300),
        "step": request.step,
        "started_at": request.started_at,
        "state": request.state,
        "origin": request.origin,
        "kind": request.kind,
        "plan": request.plan,
        "policy": short(request.policy, 100),
        "ask_scheduler": request.ask_scheduler,
        "body": pack(body),
        "fold_keys": orjson.dumps([short(key, 300) for key in request.keys]).decode(),
        "incident_id": request.incident_id,
        "held_by": request.held_by,
        "asked_by": short(request.asked_by),
        "created_at": now,
        "not_before": utc(request.not_before),
        "expires_at": utc(request.expires_at),
        "leases": 0,
        "tries": 0,
        "retracted": False,
    }
