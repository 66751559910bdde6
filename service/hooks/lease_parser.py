"""Parses leased requests and rejects values that could do harm on a command line."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

from service.contracts.advice import ActionKind
from service.hooks.request import Request

REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
# Host names of RFC 1123, plus the underscore that some sites use; no leading dash, no list syntax.
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
ACTIONS = ("requeue", "submit")
MOST_NODES = 1_000
LONGEST = 4_096
LONGEST_ID = 200
KNOWN = frozenset(
    {"request_id", "lease_token", "expires_at", "cluster", "job_id", "attempt", "action", "exclude_nodes"}
    | {"resume_from", "changes", "not_before", "reasons"}
)


class InvalidRequest(Exception):
    """An invalid leased request: the text names the field, the attributes are needed to refuse it."""

    def __init__(self, text: str, request_id: str | None = None, lease_token: str | None = None) -> None:
        super().__init__(text)
        self.request_id = request_id
        self.lease_token = lease_token


def read_request(item: Any, good_until: datetime) -> Request:
    """Parse one entry of the service's answer.

    Raises:
        InvalidRequest: names the invalid field.
    """
    if not isinstance(item, dict):
        raise InvalidRequest("expected an object for each request")
    request_id = item.get("request_id")
    token = item.get("lease_token")
    if not isinstance(request_id, str) or REQUEST_ID.fullmatch(request_id) is None:
        raise InvalidRequest("request_id: expected 1 to 64 letters, digits, dashes and underscores")
    if not isinstance(token, str) or not token or len(token) > LONGEST:
        raise InvalidRequest("lease_token: expected a string", request_id)
    try:
        return _read(item, request_id, token, good_until)
    except ValueError as error:
        raise InvalidRequest(str(error), request_id, token) from None


def expiry_of(item: Any, name: str) -> datetime | None:
    """Return the end of the lease (`expires_at`) or request (`valid_until`) by the service's clock, if given."""
    with suppress(ValueError):
        return _time_with_zone(name, item.get(name) if isinstance(item, dict) else None)
    return None


def request_to_json(request: Request) -> dict[str, Any]:
    """Return the request as JSON without its lease token; `read_request` parses it again with a token."""
    return {
        **request.extra,
        "request_id": request.request_id,
        "cluster": request.cluster,
        "job_id": request.job_id,
        "attempt": request.attempt,
        "action": request.action,
        "exclude_nodes": list(request.exclude_nodes),
        "resume_from": request.resume_from,
        "changes": dict(request.changes),
        "not_before": None if request.not_before is None else request.not_before.isoformat(),
        "reasons": list(request.reasons),
    }


def _read(item: Mapping[str, Any], request_id: str, token: str, good_until: datetime) -> Request:
    action = item.get("action")
    if action not in ACTIONS:
        raise ValueError(f"action: expected one of {', '.join(ACTIONS)}")
    attempt = item.get("attempt")
    if attempt is not None and (not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 0):
        raise ValueError("attempt: expected a whole number from 0 on")
    changes = item.get("changes") or {}
    if not isinstance(changes, dict):
        raise ValueError("changes: expected an object")  # noqa: TRY004 - one error for what is wrong in a request
    reasons = item.get("reasons") or ()
    if not isinstance(reasons, list | tuple):
        raise ValueError("reasons: expected a list")  # noqa: TRY004 - as above
    return Request(
        request_id=request_id,
        lease_token=token,
        cluster=_text(item, "cluster"),
        job_id=_text(item, "job_id"),
        attempt=attempt,
        action=cast("ActionKind", action),
        good_until=good_until,
        exclude_nodes=_nodes(item.get("exclude_nodes")),
        resume_from=None if item.get("resume_from") is None else _text(item, "resume_from", LONGEST),
        changes=changes,
        not_before=_time_with_zone("not_before", item.get("not_before")),
        reasons=tuple(reasons),
        extra={key: value for key, value in item.items() if key not in KNOWN},
    )


def _text(item: Mapping[str, Any], key: str, longest: int = LONGEST_ID) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value or len(value) > longest or not value.isprintable():
        raise ValueError(f"{key}: expected 1 to {longest} printable characters")
    return value


def _nodes(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MOST_NODES:
        raise ValueError(f"exclude_nodes: expected a list of at most {MOST_NODES} names")
    if any(not isinstance(node, str) or NODE_NAME.fullmatch(node) is None for node in value):
        raise ValueError("exclude_nodes: expected names of nodes")
    return tuple(dict.fromkeys(value))


def _time_with_zone(key: str, value: Any) -> datetime | None:
    """The time of a field. Unlike elsewhere, one without a zone is refused: a job may start hours too early by it."""
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        in_utc = at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{key}: expected a time as in RFC 3339") from None
    if at.tzinfo is None:
        raise ValueError(f"{key}: expected a time with its zone")
    return in_utc
