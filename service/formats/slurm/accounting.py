"""One job of Slurm's accounting: an entry of `jobs` of `sacct --json`, or of slurmrestd's `/slurmdb/v0.0.4x/jobs`.

Fields as in the OpenAPI documents of Slurm 24.11 to 26.05 (v0.0.42 to v0.0.45). Times are seconds since 1970 (0: none),
a limit is in minutes, memory in MiB, and a number that may be unset is {set, infinite, number}. The job is read as the
record that the Kafka plugin publishes of the same attempt, so that the two are one event.
"""

from collections.abc import Mapping
from typing import Any

from service.contracts.event import LARGEST_COUNT, JobCompletion
from service.formats import field_reading
from service.formats.field_reading import Skipped
from service.formats.slurm import job as slurm_job
from service.formats.slurm.job import NO_END, STATES, base_state

# Fields without which a job is read all the same, with all that is below them.
OPTIONAL = frozenset(
    {"account", "container", "derived_exit_code", "exit_code", "failed_node", "name", "nodes", "partition"}
    | {"qos", "required", "reservation", "restart_cnt", "script", "stderr", "stderr_expanded"}
    | {"stdout", "stdout_expanded", "time.elapsed", "time.limit", "time.start", "time.submission", "tres", "user"}
    | {"working_directory"}
)
# Texts with the same name in both.
_SAME = ("account", "container", "failed_node", "nodes", "partition", "qos", "script")
_TIME_EXPECTED = "seconds since 1970"
_EXIT_MOST = 255


def is_it(obj: Mapping[str, Any]) -> bool:
    """Return whether the object is such a job."""
    state = obj.get("state")
    return isinstance(state, dict) and "current" in state and "job_id" in obj


def read(job: Mapping[str, Any], cluster: str | None = None) -> JobCompletion | Skipped:
    """Return the event of one job.

    Raises:
        UnreadableRecord: a field is wrong; the error names it.
    """
    number = field_reading.whole(job, "job_id", least=1)
    if number is None:
        raise field_reading.unreadable("job_id", "an integer ≥ 1")
    state = _state(job)
    if state in NO_END:
        return Skipped(f"Slurm: state {state} is not an end")
    times = field_reading.mapping(job, "time")
    ended_at = _at(times, "end")
    if ended_at is None:
        raise field_reading.unreadable("time.end", _TIME_EXPECTED, times.get("end"))
    minutes = _number(times, "limit", "time.")
    read_as = {
        "jobid": number,
        "state": state,
        "cluster": field_reading.text(job, "cluster"),
        "username": field_reading.text(job, "user"),
        "job_name": field_reading.text(job, "name"),
        "work_dir": field_reading.text(job, "working_directory"),
        "std_out": field_reading.text(job, "stdout_expanded") or field_reading.text(job, "stdout"),
        "std_err": field_reading.text(job, "stderr_expanded") or field_reading.text(job, "stderr"),
        **{name: field_reading.text(job, name) for name in _SAME},
        **_group(job, "array", "task_id", "array_job_id", "array_task_id"),
        **_group(job, "het", "job_offset", "het_job_id", "het_job_offset"),
        "@submit": _at(times, "submission"),
        "@start": _at(times, "start"),
        "@end": ended_at,
        "elapsed": field_reading.whole(times, "elapsed", "time."),
        "exit_code": _codes(job, "exit_code"),
        "derived_ec": _codes(job, "derived_exit_code"),
        "time_limit": None if minutes is None else 60 * min(minutes, LARGEST_COUNT // 60),
        "total_cpus": field_reading.whole(field_reading.mapping(job, "required"), "CPUs", "required."),
        "tres_alloc": _resources(job, "allocated") or _resources(job, "requested"),
        "reservation_name": field_reading.text(field_reading.mapping(job, "reservation"), "name", "reservation."),
    }
    restarts = field_reading.whole(job, "restart_cnt")
    found = slurm_job.read(read_as, cluster)
    return found if isinstance(found, Skipped) else found.model_copy(update={"restart_count": restarts})


def _state(job: Mapping[str, Any]) -> str:
    """The base state, which comes before the flags."""
    current = field_reading.mapping(job, "state").get("current")
    first = current[0] if isinstance(current, list) and current else current
    state = base_state(first) if isinstance(first, str) else ""
    if state not in NO_END | STATES.keys():
        raise field_reading.unreadable("state.current", f"one of {', '.join(STATES)}, or a state that is no end", first)
    return state


def _at(times: Mapping[str, Any], key: str) -> str | None:
    seconds = _number(times, key, "time.")
    return None if not seconds else field_reading.epoch(seconds, f"time.{key}").isoformat()


def _number(obj: Mapping[str, Any], key: str, within: str) -> int | None:
    """A number, plain or as {set, infinite, number}; None: not set, or unlimited."""
    value = obj.get(key)
    if not isinstance(value, dict):
        return field_reading.whole(obj, key, within)
    is_set = value.get("set") is True and value.get("infinite") is not True
    return field_reading.whole(value, "number", f"{within}{key}.") if is_set else None


def _codes(job: Mapping[str, Any], key: str) -> str | None:
    """`<exit>:<signal>`, as the plugin writes it."""
    codes = field_reading.mapping(job, key)
    code = _number(codes, "return_code", f"{key}.")
    signal = _number(field_reading.mapping(codes, "signal", f"{key}."), "id", f"{key}.signal.")
    if code is None and signal is None:
        return None
    if max(code or 0, signal or 0) > _EXIT_MOST:
        raise field_reading.unreadable(key, f"codes of 0 to {_EXIT_MOST}", max(code or 0, signal or 0))
    return f"{code or 0}:{signal or 0}"


def _group(job: Mapping[str, Any], key: str, part: str, whole_name: str, part_name: str) -> dict[str, int | None]:
    group = field_reading.mapping(job, key)
    whole = field_reading.whole(group, "job_id", f"{key}.")
    return {whole_name: whole, part_name: _number(group, part, f"{key}.") if whole else None}


def _resources(job: Mapping[str, Any], which: str) -> str:
    """Resources in the text of the plugin's `tres_alloc`: `cpu=64,mem=512000M,gres/gpu=8`."""
    parts = []
    for index, one in enumerate(field_reading.mappings(field_reading.mapping(job, "tres"), which, "tres.")):
        place = f"tres.{which}[{index}]."
        kind, name = field_reading.text(one, "type", place), field_reading.text(one, "name", place)
        count = field_reading.whole(one, "count", place)
        if kind is not None and count is not None:
            unit = "M" if kind == "mem" else ""
            parts.append(f"{kind}/{name}={count}{unit}" if name else f"{kind}={count}{unit}")
    return ",".join(parts)
