"""Ray's own jobs API: one object of `GET /api/jobs/` (Ray 2.60)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.events import JobCompletion, Status
from service.formats import fields
from service.formats.outcome import Skipped

STATES = {"SUCCEEDED": Status.SUCCEEDED, "FAILED": Status.FAILED, "STOPPED": Status.CANCELLED}
NO_END = frozenset({"PENDING", "RUNNING"})
_LOG_MARK = "last available logs"
_NEGATIVE_LEAST = -64


def read(job: Mapping[str, Any], cluster: str | None = None) -> JobCompletion | Skipped:
    """The event of one job.

    Raises:
        UnreadableRecord: names the field that is wrong.
    """
    state = fields.text(job, "status")
    if state in NO_END:
        return Skipped(f"Ray: status {state} is not an end")
    if state not in STATES:
        raise fields.unreadable("status", f"one of {', '.join([*STATES, *sorted(NO_END)])}", state)
    identity = fields.text(job, "submission_id") or fields.text(job, "job_id")
    if identity is None:
        raise fields.unreadable("submission_id", "a string")
    ended_at = _milliseconds(job, "end_time")
    if ended_at is None:
        raise fields.unreadable("end_time", "milliseconds since 1970")
    message, tail = split_message(fields.text(job, "message"))
    exit_code, signal = _driver_exit(job)
    metadata = fields.texts(job, "metadata")
    return fields.build(
        {
            "cluster": fields.cluster_name(fields.text(job, "cluster"), cluster),
            "job_id": identity,
            "name": metadata.get("job_name"),
            "user": metadata.get("user"),
            "command": fields.text(job, "entrypoint"),
            "framework": "ray",
            "status": STATES[state],
            "exit_code": exit_code,
            "signal": signal,
            "scheduler": "ray",
            "reason": fields.text(job, "error_type"),
            "message": message,
            "started_at": _milliseconds(job, "start_time"),
            "ended_at": ended_at,
            "logs": () if tail is None else ({"stream": "stdout", "tail": tail},),
            "labels": metadata,
        }
    )


def split_message(message: str | None) -> tuple[str | None, str | None]:
    """Ray's `... failed with exit code 1, last available logs (truncated to 20,000 chars): LOG` as words and log."""
    if message is None:
        return None, None
    at = message.find(_LOG_MARK)
    colon = message.find(":", at)
    if at < 0 or colon < 0:
        return message, None
    return message[:at].rstrip(" ,") or None, message[colon + 1 :].lstrip(" \n") or None


def _driver_exit(job: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """A negative exit code is the signal that ended the driver."""
    code = fields.whole(job, "driver_exit_code", least=_NEGATIVE_LEAST)
    if code is not None and code < 0:
        return None, -code
    return code, None


def _milliseconds(job: Mapping[str, Any], key: str) -> datetime | None:
    value = fields.whole(job, key)
    return None if not value else fields.epoch(value / 1000, key)
