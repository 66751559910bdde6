"""Paths of a Slurm job's output: the record's `std_out` and `std_err` with expanded filename patterns.

The patterns are those of sbatch(1), "filename pattern"; the record has them unexpanded. The names of batch script
output were measured on Slurm 24.11: `%J` is the job id, `%s` is "batch", `%a` outside an array is 4294967294, and
unknown letters are kept.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from service.formats import field_reading

_PATTERN = re.compile(r"%(\d{0,3})([A-Za-z%])")
_WIDEST = 10  # sbatch(1): larger widths are reduced to this
_DISCARDED = frozenset({"/dev/null", "(null)"})
# PATH_MAX of Linux, and more than a name has: 300,000 patterns of a long name would make gigabytes of 600 KB.
_LONGEST_PATH = 4_096
_LONGEST_NAME = 1_024
_BATCH_SCRIPT_STEP = "batch"
_NO_TASK = 2**32 - 2
# No record contains the restart count or the SLUID (from 25.11 on); job name, user and node may be absent.
_UNKNOWN_LETTERS = frozenset({"r", "S", "x", "u", "N"})


def log_refs(record: Mapping[str, Any], *, job: int, user: str | None, nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Return the batch script's output streams: one file if `std_err` is absent or equal to `std_out`."""
    out, err = field_reading.text(record, "std_out"), field_reading.text(record, "std_err")
    streams = [("stdout", out)]
    if err is not None and err != out:
        streams.append(("stderr", err))
    known = _known(record, job=job, user=user, nodes=nodes)
    work_dir = field_reading.text(record, "work_dir")
    refs: list[dict[str, Any]] = []
    for stream, template in streams:
        if template is None or template in _DISCARDED:
            continue
        ref: dict[str, Any] = {"stream": stream, "node": nodes[0] if nodes else None}
        path, unknown = expand(template[: _LONGEST_PATH + 1], known)
        if not path.startswith("/") and work_dir is not None:
            path = posixpath.join(work_dir, path)
        if max(len(template), len(path)) > _LONGEST_PATH:
            ref["missing"] = f"the path has more than {_LONGEST_PATH:,} characters"
        elif unknown is not None:
            ref["missing"] = f"the path {template!r} depends on {unknown}, which the record does not tell"
        elif not path.startswith("/"):
            ref["missing"] = f"the path {template!r} is relative and the record has no work_dir"
        else:
            ref["uri"] = "file://" + quote(path)
        refs.append(ref)
    return refs


def expand(template: str, known: Mapping[str, str]) -> tuple[str, str | None]:
    """Return the path and the first pattern that could not be expanded (None: all were expanded).

    A template with a backslash is not expanded; its backslashes are removed.
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
            unknown = unknown or (f"%{letter}" if letter in _UNKNOWN_LETTERS else None)
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
    return {letter: value for letter, value in values.items() if value is not None and len(value) <= _LONGEST_NAME}
