"""Where a Slurm job's output went: the record's `std_out` and `std_err` with their patterns filled in.

Patterns as in sbatch(1), "filename pattern"; the record has them unexpanded. What a batch script's file is called was
measured on Slurm 24.11: `%J` is the job's id, `%s` is "batch", `%a` outside an array is 4294967294, and letters that
mean nothing stay as they are.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from service.formats import field_reading

_PATTERN = re.compile(r"%(\d{0,3})([A-Za-z%])")
_WIDEST = 10  # sbatch(1): wider is cut to this
_NOWHERE = frozenset({"/dev/null", "(null)"})
_BATCH_SCRIPT_STEP = "batch"
_NO_TASK = 2**32 - 2
# Restart count and SLUID (from 25.11 on) stand in no record; job name, user and node may be absent from one.
_NOT_TOLD = frozenset({"r", "S", "x", "u", "N"})


def log_refs(record: Mapping[str, Any], *, job: int, user: str | None, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """The batch script's output streams. `std_err` absent or equal to `std_out`: both are in one file."""
    out, err = field_reading.text(record, "std_out"), field_reading.text(record, "std_err")
    streams = [("stdout", out)]
    if err is not None and err != out:
        streams.append(("stderr", err))
    known = _known(record, job=job, user=user, nodes=nodes)
    work_dir = field_reading.text(record, "work_dir")
    refs: list[dict[str, Any]] = []
    for stream, template in streams:
        if template is None or template in _NOWHERE:
            continue
        ref: dict[str, Any] = {"stream": stream, "node": nodes[0] if nodes else None}
        path, unknown = expand(template, known)
        if not path.startswith("/") and work_dir is not None:
            path = posixpath.join(work_dir, path)
        if unknown is not None:
            ref["missing"] = f"the path {template!r} depends on {unknown}, which the record does not tell"
        elif not path.startswith("/"):
            ref["missing"] = f"the path {template!r} is relative and the record has no work_dir"
        else:
            ref["uri"] = "file://" + quote(path)
        refs.append(ref)
    return refs


def expand(template: str, known: Mapping[str, str]) -> tuple[str, str | None]:
    """The path, and the first pattern that could not be filled in (None: all were).

    A template with a backslash is taken as it is, without its backslashes.
    """
    if "\\" in template:
        return template.replace("\\", ""), None
    unknown: str | None = None

    def fill(hit: re.Match[str]) -> str:
        nonlocal unknown
        width, letter = hit.groups()
        if letter == "%":
            return "%"
        value = known.get(letter)
        if value is None:
            unknown = unknown or (f"%{letter}" if letter in _NOT_TOLD else None)
            return hit[0]
        return value.rjust(min(int(width), _WIDEST), "0") if width and value.isdecimal() else value

    return _PATTERN.sub(fill, template), unknown


def _known(record: Mapping[str, Any], *, job: int, user: str | None, nodes: Sequence[str]) -> dict[str, str]:
    array, task = field_reading.whole(record, "array_job_id"), field_reading.whole(record, "array_task_id")
    values = {
        "j": str(job),
        "J": str(job),
        "A": str(array or job),
        "a": str(_NO_TASK if task is None else task),
        "b": str((_NO_TASK if task is None else task) % 10),
        "x": field_reading.text(record, "job_name"),
        "u": user,
        "N": nodes[0].partition(".")[0] if nodes else None,
        "n": "0",
        "t": "0",
        "s": _BATCH_SCRIPT_STEP,
    }
    return {letter: value for letter, value in values.items() if value is not None}
