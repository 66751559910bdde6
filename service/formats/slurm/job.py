"""Slurm's jobcomp/kafka record, which the plugin publishes when a job ends (and, from 25.05 on, when it starts).

The fields are those of Slurm's `src/plugins/jobcomp/common/jobcomp_common.c`; the meaning of `exit_code` was
measured on Slurm 24.11. A record has no event id and no restart count: a requeued job ends several times under one
`jobid`, so attempts are distinguished by their times.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from service.contracts.event import LARGEST_COUNT, JobCompletion, Status
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.slurm.nodes import expand_nodes
from service.formats.slurm.paths import log_refs

# Fields without which a record is read all the same, with all that is below them.
OPTIONAL = frozenset(
    {"account", "container", "exit_code", "failed_node", "features", "job_name", "nodes", "partition", "qos"}
    | {"reservation_name", "script", "std_err", "std_in", "std_out", "time_limit", "total_cpus", "tres_alloc"}
    | {"tres_req", "user_id", "username", "work_dir", "@start", "@submit"}
)
# Base states, https://slurm.schedmd.com/job_state_codes.html.
STATES = {
    "COMPLETED": Status.SUCCEEDED,
    "FAILED": Status.FAILED,
    "BOOT_FAIL": Status.FAILED,
    "LAUNCH_FAILED": Status.FAILED,
    "RECONFIG_FAIL": Status.FAILED,
    "TIMEOUT": Status.TIMEOUT,
    "DEADLINE": Status.TIMEOUT,
    "OUT_OF_MEMORY": Status.OUT_OF_MEMORY,
    "NODE_FAIL": Status.NODE_FAIL,
    "PREEMPTED": Status.PREEMPTED,
    "CANCELLED": Status.CANCELLED,
}
# Not an end: the job waits, runs, changes its size, or was requeued.
NO_END = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "UPDATE_DB"}
    | {"REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "EXPEDITING", "REVOKED", "RESV_DEL_HOLD"}
    | {"RESIZING", "POWER_UP_NODE"}
)
_STATE_EXPECTED = f"one of {', '.join(STATES)}, or a state that is no end such as PENDING"
_UNKNOWN = ("Unknown", "None", "N/A", "(null)")
_NO_USER = 2**32 - 2  # NO_VAL of slurm.h
_NO_LIMIT = 365 * 24 * 3600  # value in records of jobs without a limit
_LAST_SIGNAL = 64
_SCRIPT_CHARS = 16 * 1024


def read(record: Mapping[str, Any], cluster: str | None = None) -> JobCompletion | Skipped:
    """Return the event of one record.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    base = field_reading.whole(record, "jobid", least=1)
    if base is None:
        raise field_reading.unreadable("jobid", "an integer ≥ 1")
    raw_state = field_reading.text(record, "state")
    if raw_state is None:
        return Skipped("Slurm: a start record (no state)")
    state = base_state(raw_state)
    if state in NO_END:
        return Skipped(f"Slurm: state {state} is not an end")
    if state not in STATES:
        raise field_reading.unreadable("state", _STATE_EXPECTED, raw_state)
    ended_at = _time(record, "@end")
    if ended_at is None:
        raise field_reading.unreadable("@end", 'a time such as "2026-11-20T03:41:57"', record.get("@end"))
    started_at = _time(record, "@start")
    exit_code, signal = exit_and_signal(field_reading.text(record, "exit_code"), state)
    nodes = expand_nodes(field_reading.text(record, "nodes"), "nodes")
    failed_node = field_reading.text(record, "failed_node")
    failed_node = None if failed_node in _UNKNOWN else failed_node
    tres = read_tres(field_reading.text(record, "tres_alloc") or field_reading.text(record, "tres_req"))
    user = field_reading.text(record, "username")
    limit = field_reading.whole(record, "time_limit")
    values = {
        "cluster": field_reading.cluster_name(field_reading.text(record, "cluster"), cluster),
        "job_id": job_id(record, base),
        "name": field_reading.text(record, "job_name"),
        "user": user,
        "uid": _uid(field_reading.whole(record, "user_id")),
        "team": field_reading.text(record, "account"),
        "queue": field_reading.text(record, "partition"),
        "image": field_reading.text(record, "container"),
        "command": _command(field_reading.text(record, "script")),
        "gpu_type": tres.gpu_type,
        "status": STATES[state],
        "exit_code": exit_code,
        "signal": signal,
        "scheduler": "slurm",
        "reason": state,
        "message": _words(record, state, failed_node),
        "submitted_at": _time(record, "@submit"),
        "started_at": started_at,
        "ended_at": ended_at,
        "time_limit_s": None if limit is None or limit >= _NO_LIMIT else limit,
        "gpus": tres.gpus,
        "requested": {
            "cpus": tres.cpus or field_reading.whole(record, "total_cpus"),
            "memory_bytes": tres.memory_bytes,
        },
        "nodes": nodes,
        # Cancelled while pending, which Slurm writes as a start at the end or none: nothing ran, so there is no log.
        "logs": ()
        if state == "CANCELLED" and (started_at is None or (started_at == ended_at and not nodes))
        else log_refs(record, job=base, user=user, nodes=nodes),
        "node_events": _node_events(failed_node, state, base, ended_at),
        "labels": {
            f"slurm/{key}": value
            for key in ("qos", "reservation_name", "features")
            if (value := field_reading.text(record, key))
        },
    }
    return field_reading.build(values)


def base_state(text: str) -> str:
    """Return the state without additions: `CANCELLED` for `CANCELLED by 5021` and `CANCELLED+`."""
    return (text.split() or [""])[0].rstrip("+").upper()


def job_id(record: Mapping[str, Any], base: int) -> str:
    """Return the job id: `123`, `123_4` for an array task, `123+1` for a component of a heterogeneous job."""
    for whole, part, joint in (
        ("array_job_id", "array_task_id", "_"),
        ("het_job_id", "het_job_offset", "+"),
        ("pack_job_id", "pack_job_offset", "+"),
    ):
        group, index = field_reading.whole(record, whole), field_reading.whole(record, part)
        if group and index is not None:
            return f"{group}{joint}{index}"
    return str(base)


def exit_and_signal(text: str | None, state: str, field: str = "exit_code") -> tuple[int | None, int | None]:
    """Return the exit code and signal of the process from Slurm's `<exit>:<signal>`.

    "0:0" has no meaning for a job that was stopped externally (time limit, preemption ...). A lost node is written as
    "0:1", which is not SIGHUP. Numbers above 64 (out of memory: "0:125") are codes of Slurm, not signals, and so is 53,
    its code for an output file that cannot be opened.
    """
    if text is None:
        return None, None
    left, colon, right = text.partition(":")
    if not colon or not left.isdecimal() or not right.isdecimal() or len(text) > len("255:255"):
        raise field_reading.unreadable(field, '"<exit>:<signal>" such as "1:0"', text)
    code, signal = int(left), int(right)
    if code > 255 or signal > 255:  # noqa: PLR2004 - maximum of a wait status
        raise field_reading.unreadable(field, '"<exit>:<signal>", each 0 to 255', text)
    if signal:
        real = signal <= _LAST_SIGNAL and signal != 53 and state != "NODE_FAIL"  # noqa: PLR2004 - see above
        return None, signal if real else None
    return (code, None) if code or state in {"COMPLETED", "FAILED"} else (None, None)


def _uid(number: int | None) -> int | None:
    return number if number is not None and number < _NO_USER else None


def _time(record: Mapping[str, Any], key: str) -> datetime | None:
    if record.get(key) in _UNKNOWN:
        return None
    return field_reading.instant(record, key)


def _command(script: str | None) -> str | None:
    """Return the commands of the batch script, without comments and `#SBATCH` lines."""
    if script is None:
        return None
    lines = (line.strip() for line in script[:_SCRIPT_CHARS].splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("#")) or None


def _words(record: Mapping[str, Any], state: str, failed_node: str | None) -> str:
    """Return the record's description of the job's end, in the format of `scontrol show job`."""
    words = [f"JobState={state}"]
    for key, name in (("exit_code", "ExitCode"), ("derived_ec", "DerivedExitCode")):
        value = field_reading.text(record, key)
        if value is not None:
            words.append(f"{name}={value}")
    elapsed = record.get("elapsed")
    if isinstance(elapsed, int) and elapsed >= 0:  # negative: cancelled while pending
        words.append(f"Elapsed={elapsed}s")
    if failed_node:
        words.append(f"FailedNode={failed_node}")
    return " ".join(words)


def _node_events(failed_node: str | None, state: str, job: int, at: datetime) -> tuple[dict[str, Any], ...]:
    if failed_node is None:
        return ()
    return ({"at": at, "node": failed_node, "source": "slurmctld", "text": f"{state}: node failed under job {job}"},)


_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}  # a bare number is MiB
_AMOUNT = re.compile(r"(\d{1,16}(?:\.\d{1,9})?)([KMGTP]?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrackableResources:
    """The resources of a job; None if absent or not readable."""

    cpus: int | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None


def read_tres(text: str | None) -> TrackableResources:
    """Parse the allocated or requested resources of a job."""
    parts = dict(part.split("=", 1) for part in (text or "").split(",") if "=" in part)
    typed = [(name.removeprefix("gres/gpu:"), count) for name, count in parts.items() if name.startswith("gres/gpu:")]
    counts = [_whole(count) for _, count in typed]
    gpus = _whole(parts.get("gres/gpu"))
    if gpus is None and typed:
        gpus = sum(count or 0 for count in counts)
    return TrackableResources(
        cpus=_whole(parts.get("cpu")),
        memory_bytes=_bytes(parts.get("mem")),
        gpus=gpus,
        gpu_type=typed[0][0] if len(typed) == 1 else None,
    )


def _whole(text: str | None) -> int | None:
    if text is None or not text.isdecimal() or len(text) > len(str(LARGEST_COUNT)):
        return None
    return min(int(text), LARGEST_COUNT)


def _bytes(text: str | None) -> int | None:
    hit = _AMOUNT.fullmatch(text or "")
    return None if hit is None else min(int(Decimal(hit[1]) * _UNITS[hit[2].upper()]), LARGEST_COUNT)
