"""The environment of Slurm's EpilogSlurmctld as JSON, for sites without the Kafka plugin.

Variables: https://slurm.schedmd.com/prolog_epilog.html. They do not include the job state: the script may add
`SLURM_JOB_STATE` (from `scontrol show job`); without it a time limit ("0:0") looks like success.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.contracts.event import JobCompletion
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.slurm.job import NO_END, STATES, base_state, exit_and_signal
from service.formats.slurm.nodes import expand_nodes

# Fields without which a record is read all the same, with all that is below them.
OPTIONAL = frozenset(
    {"SLURM_JOB_ACCOUNT", "SLURM_JOB_DERIVED_EC", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION"}
    | {"SLURM_JOB_USER", "SLURM_JOB_UID"}
)
_OUT_OF_MEMORY = "0:125"  # measured on Slurm 24.11
_NODE_FAIL = "0:1"  # as above: what Slurm writes for a lost node, no SIGHUP; a script that gets SIGHUP is very rare
_TIME_EXPECTED = "seconds since 1970 (Slurm sets it from 23.02 on; the script may add it)"


def read(env: Mapping[str, Any], cluster: str | None = None) -> JobCompletion | Skipped:
    """Return the event of one environment.

    Raises:
        UnreadableRecord: a variable is missing or wrong; the error names it.
    """
    job = _number(env, "SLURM_JOB_ID")
    if job is None:
        raise field_reading.unreadable("SLURM_JOB_ID", "a job's number")
    ended_at = _at(env, "SLURM_JOB_END_TIME") or field_reading.instant(env, "ended_at")
    if ended_at is None:
        raise field_reading.unreadable("SLURM_JOB_END_TIME", _TIME_EXPECTED)
    codes = field_reading.text(env, "SLURM_JOB_EXIT_CODE2")
    raw_state = field_reading.text(env, "SLURM_JOB_STATE")
    state = base_state(raw_state) if raw_state is not None else _state(codes)
    if state in NO_END - {"COMPLETING"}:
        return Skipped(f"Slurm: state {state} is not an end")
    if state == "COMPLETING":
        state = _state(codes)
    if state not in STATES:
        raise field_reading.unreadable("SLURM_JOB_STATE", f"one of {', '.join(STATES)}", raw_state)
    exit_code, signal = exit_and_signal(codes, state, "SLURM_JOB_EXIT_CODE2")
    started_at, restarts = _at(env, "SLURM_JOB_START_TIME"), _number(env, "SLURM_RESTART_COUNT")
    derived = field_reading.text(env, "SLURM_JOB_DERIVED_EC")
    words = [f"JobState={state}"] if raw_state is not None else []
    words += [f"ExitCode={codes}"] if codes else []
    words += [f"DerivedExitCode={derived}"] if derived else []
    return field_reading.build(
        {
            "cluster": field_reading.cluster_name(field_reading.text(env, "SLURM_CLUSTER_NAME"), cluster),
            "job_id": _job_id(env, job),
            # If both times are known, they distinguish attempts, as in the plugin's record of the same attempt.
            "attempt": None if started_at is not None else restarts,
            "restart_count": restarts,
            "name": field_reading.text(env, "SLURM_JOB_NAME"),
            "user": field_reading.text(env, "SLURM_JOB_USER"),
            "uid": _number(env, "SLURM_JOB_UID"),
            "team": field_reading.text(env, "SLURM_JOB_ACCOUNT"),
            "queue": field_reading.text(env, "SLURM_JOB_PARTITION"),
            "status": STATES[state],
            "exit_code": exit_code,
            "signal": signal,
            "scheduler": "slurm",
            "reason": state if raw_state is not None else None,
            "message": " ".join(words) or None,
            "started_at": started_at,
            "ended_at": ended_at,
            "nodes": expand_nodes(field_reading.text(env, "SLURM_JOB_NODELIST"), "SLURM_JOB_NODELIST"),
        }
    )


def _state(codes: str | None) -> str:
    if codes is None:
        raise field_reading.unreadable("SLURM_JOB_EXIT_CODE2", '"<exit>:<signal>" such as "1:0"')
    if codes == _OUT_OF_MEMORY:
        return "OUT_OF_MEMORY"
    if codes == _NODE_FAIL:
        return "NODE_FAIL"
    return "COMPLETED" if codes == "0:0" else "FAILED"


def _job_id(env: Mapping[str, Any], job: int) -> str:
    for whole, part, joint in (
        ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "_"),
        ("SLURM_HET_JOB_ID", "SLURM_HET_JOB_OFFSET", "+"),
    ):
        group, index = _number(env, whole), _number(env, part)
        if group and index is not None:
            return f"{group}{joint}{index}"
    return str(job)


def _number(env: Mapping[str, Any], key: str) -> int | None:
    value = env.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.isdecimal() and len(value) <= len("9007199254740992"):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**53:
        return value
    raise field_reading.unreadable(key, "a whole number", value)


def _at(env: Mapping[str, Any], key: str) -> datetime | None:
    seconds = _number(env, key)
    return None if not seconds else field_reading.epoch(seconds, key)
