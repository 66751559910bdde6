"""Reads the environments of submissions, which the controller stores below its StateSaveLocation while it knows a job.

`hash.<last digit of the number>/job.<number>/environment`: the number of variables as four bytes, little-endian, then
each `NAME=value` followed by a null byte (tested on Slurm 24.11). The tasks of an array share that of the first task.
"""

from pathlib import Path

from service.hooks.slurm.record import SlurmJob, whole

HEAD = 4
LARGEST = 1 << 20


def environment(spool: Path, job: SlurmJob) -> bytes | None:
    """Return the variables of a job's submission, each followed by a null byte; None: not available.

    Slurm's own variables (SLURM_...) are omitted: a new submission sets them again.

    Raises:
        OSError: the file exists and can't be read.
    """
    number = whole(job.raw, "array_job_id") or whole(job.raw, "job_id") or 0
    path = spool / f"hash.{number % 10}" / f"job.{number}" / "environment"
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    found = content[HEAD:].split(b"\0")
    if not HEAD <= len(content) <= LARGEST or len(found) != int.from_bytes(content[:HEAD], "little") + 1 or found[-1]:
        return None
    return b"".join(one + b"\0" for one in found[:-1] if b"=" in one and not one.startswith(b"SLURM_"))
