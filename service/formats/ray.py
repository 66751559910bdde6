"""Ray's jobs API: one object of `GET /api/jobs/` (Ray 2.60)."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.contracts.event import JobCompletion, Status
from service.formats import field_reading
from service.formats.field_reading import Skipped

STATES = {"SUCCEEDED": Status.SUCCEEDED, "FAILED": Status.FAILED, "STOPPED": Status.CANCELLED}
NO_END = frozenset({"PENDING", "RUNNING"})
# Fields without which a record is read all the same, with all that is below them.
OPTIONAL = frozenset({"driver_exit_code", "entrypoint", "error_type", "message", "metadata", "start_time"})
_ENDED_WITH = re.compile(r"Job entrypoint command failed with exit code (-?\d{1,3})\b")
_LOG_MARK = "last available logs"
_NEGATIVE_LEAST = -64


def read(job: Mapping[str, Any], cluster: str | None = None) -> JobCompletion | Skipped:
    """Return the event of one job.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    state = field_reading.text(job, "status")
    if state in NO_END:
        return Skipped(f"Ray: status {state} is not an end")
    if state not in STATES:
        raise field_reading.unreadable("status", f"one of {', '.join([*STATES, *sorted(NO_END)])}", state)
    identity = field_reading.text(job, "submission_id") or field_reading.text(job, "job_id")
    if identity is None:
        raise field_reading.unreadable("submission_id", "a string")
    ended_at = _milliseconds(job, "end_time")
    if ended_at is None:
        raise field_reading.unreadable("end_time", "milliseconds since 1970")
    message, tail = split_message(field_reading.text(job, "message"))
    code = field_reading.whole(job, "driver_exit_code", least=_NEGATIVE_LEAST)
    exit_code, signal = reported_exit(message) if code is None else _exit_and_signal(code)
    metadata = field_reading.texts(job, "metadata")
    return field_reading.build(
        {
            "cluster": field_reading.cluster_name(field_reading.text(job, "cluster"), cluster),
            "job_id": identity,
            "name": metadata.get("job_name"),
            "user": metadata.get("user"),
            "command": field_reading.text(job, "entrypoint"),
            "framework": "ray",
            "status": STATES[state],
            "exit_code": exit_code,
            "signal": signal,
            "scheduler": "ray",
            "reason": field_reading.text(job, "error_type"),
            "message": message,
            "started_at": _milliseconds(job, "start_time"),
            "ended_at": ended_at,
            "logs": () if tail is None else ({"stream": "stdout", "tail": tail},),
            "labels": metadata,
        }
    )


def split_message(message: str | None) -> tuple[str | None, str | None]:
    """Split Ray's `... failed with exit code 1, last available logs (truncated to 20,000 chars): LOG` at the log."""
    if message is None:
        return None, None
    at = message.find(_LOG_MARK)
    colon = message.find(":", at)
    if at < 0 or colon < 0:
        return message, None
    return message[:at].rstrip(" ,") or None, message[colon + 1 :].lstrip(" \n") or None


def reported_exit(message: str | None) -> tuple[int | None, int | None]:
    """Return exit code and signal of the driver that Ray's message names: older versions and RayJobs have no field."""
    found = _ENDED_WITH.match(message or "")
    return (None, None) if found is None else _exit_and_signal(int(found[1]))


def _exit_and_signal(code: int) -> tuple[int | None, int | None]:
    """A negative exit code is the signal that ended the driver."""
    return (None, -code) if code < 0 else (code, None)


def _milliseconds(job: Mapping[str, Any], key: str) -> datetime | None:
    value = field_reading.whole(job, key)
    return None if not value else field_reading.epoch(value / 1000, key)
