"""Environments of submissions, as the controller keeps them below its StateSaveLocation until it forgets a job.

`hash.<last digit of the number>/job.<number>/environment`: how many there are as four bytes, little-endian, then each
`NAME=value` with a null byte after it (read on Slurm 24.11). An array's tasks share their first one's.
"""

from pathlib import Path

from service.hooks.slurm_record import SlurmJob, whole

HEAD = 4
LARGEST = 1 << 20


def environment(spool: Path, job: SlurmJob) -> bytes | None:
    """The variables of a job's submission, each with a null byte after it; None: not to be had.

    Slurm's own (SLURM_...) are left out: a new submission makes them anew.

    Raises:
        OSError: it is there and can't be read.
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
