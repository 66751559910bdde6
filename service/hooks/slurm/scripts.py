"""Stores batch scripts and environments of failed jobs for use after Slurm has purged them (MinJobAge: 300 s).

There is one file for each job, with the job's record and, if readable, its environment. Only the hook's user can read
the folder, since the files may contain secrets.
"""

import json
import logging
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from service.clock import Clock
from service.errors import ConfigurationError
from service.hooks.slurm.record import SlurmJob, read_job, whole

log = logging.getLogger(__name__)

RETENTION = timedelta(days=3)
MAX_SCRIPT_BYTES = 4 << 20
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class SavedScript:
    """A saved job. `environment`: its variables, each followed by a null byte; None: unknown."""

    job: SlurmJob
    script: str
    environment: bytes | None = None


class ScriptStore:
    """The store of saved scripts.

    Raises:
        ConfigurationError: the folder can't be created, or others may write to it or to the folder around it: a script
            of theirs would be submitted under any name.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = {one: one.lstat() for one in (folder, folder.parent)}
        except OSError as error:
            raise ConfigurationError(f"{folder} can't be used for scripts: {error.strerror}") from None
        for one, about in found.items():
            if about.st_uid not in {0, os.geteuid()} or about.st_mode & _OTHERS_WRITE or stat.S_ISLNK(about.st_mode):
                raise ConfigurationError(
                    f"{one}: expected a folder of this user that nobody else may write to: its scripts are run"
                )

    def has(self, job_id: str, restarts: int) -> bool:
        """Return whether a job's script is saved for this number of restarts."""
        return self._path(job_id, restarts).exists()

    def save(self, job: SlurmJob, script: str, environment: bytes | None = None) -> None:
        """Save a script; the one with the most restarts of a job counts.

        Raises:
            OSError: the file can't be written.
        """
        variables = None if environment is None else environment.decode("latin-1")
        content = json.dumps({"job": job.raw, "script": script, "environment": variables})
        if len(content) > MAX_SCRIPT_BYTES:
            log.warning("job %s: its script of %d bytes is not kept", job.job_id, len(content))
            content = json.dumps({"job": job.raw, "script": None})
        path = self._path(job.job_id, job.restarts)
        fresh = path.with_suffix(".tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, opened as a Path can't
            file.write(content)
        fresh.replace(path)

    def get(self, job_id: str) -> SavedScript | None:
        """Return a saved job and its script; None: not saved, or unreadable."""
        paths = list(self._folder.glob(f"{job_id}-*.json"))
        if not paths:
            return None
        newest = max(paths, key=lambda path: int(path.stem.rpartition("-")[2]))
        try:
            content: Mapping[str, Any] = json.loads(newest.read_bytes())
            script = content["script"]
            if not isinstance(script, str):
                return None
            variables = content.get("environment")
            environment = variables.encode("latin-1") if isinstance(variables, str) else None
            return SavedScript(read_job(content["job"]), script, environment)
        except (ValueError, KeyError, TypeError, OSError) as error:
            log.warning("the saved script of job %s can't be read: %s", job_id, error)
            return None

    def prune(self) -> None:
        """Remove old scripts."""
        oldest = (self._clock.now() - RETENTION).timestamp()
        for path in self._folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)

    def _path(self, job_id: str, restarts: int) -> Path:
        return self._folder / f"{job_id}-{restarts}.json"


# The controller stores the environments of submissions below its StateSaveLocation while it knows a job, in
# `hash.<last digit of the number>/job.<number>/environment`: the number of variables as four bytes, little-endian, then
# each `NAME=value` followed by a null byte (tested on Slurm 24.11). The tasks of an array share that of the first task.
COUNT_BYTES = 4
LARGEST_ENVIRONMENT = 1 << 20


def spooled_environment(spool: Path, job: SlurmJob) -> bytes | None:
    """Return the variables of a job's submission, each followed by a null byte; None: not available.

    Slurm's own variables (SLURM_...) are omitted: a new submission sets them again.

    Raises:
        OSError: the file exists and can't be read.
    """
    number = whole(job.raw, "array_job_id") or whole(job.raw, "job_id") or 0
    path = spool / f"hash.{number % 10}" / f"job.{number}" / "environment"
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_ENVIRONMENT + 1)
    except FileNotFoundError:
        return None
    found = content[COUNT_BYTES:].split(b"\0")
    if (
        not COUNT_BYTES <= len(content) <= LARGEST_ENVIRONMENT
        or len(found) != int.from_bytes(content[:COUNT_BYTES], "little") + 1
        or found[-1]
    ):
        return None
    return b"".join(one + b"\0" for one in found[:-1] if b"=" in one and not one.startswith(b"SLURM_"))
