"""The Slurm client that runs Slurm's commands with validated arguments, without a shell, in a minimal environment.

The environment of the hook is not passed on: `sbatch` would pass it to the job. The texts that distinguish a controller
that does not answer from one that rejects were read on Slurm 24.11.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.hooks.request import SchedulerUnavailable
from service.hooks.slurm.record import SlurmJob, read_job

JOB_ID = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?", re.ASCII)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VARIABLES = ("SLURM_CONF", "TZ")
UNKNOWN_JOB = "invalid job id"
AWAY = (
    "unable to contact slurm controller",
    "unable to establish controller",
    "connection refused",
    "connection timed out",
    "socket timed out",
    "communication connection failure",
    "zero bytes were transmitted or received",
    "slurm backup controller in standby mode",
    "protocol authentication error",
    "no route to host",
)
# States of jobs whose scripts may be needed later; https://slurm.schedmd.com/squeue.html.
ROW = 2
# Without `--all`, hidden partitions and those of other groups are left out, with their jobs and nodes.
_OF_ALL = ("--all", "--noheader")
FAILED = "BOOT_FAIL,FAILED,NODE_FAIL,OUT_OF_MEMORY,PREEMPTED,TIMEOUT"


class SlurmRefused(Exception):
    """Slurm rejected the command; the text is Slurm's message. Nothing was changed."""


class SlurmCommands:
    """The Slurm client that uses the command line.

    Args:
        folder: the folder of the commands; None: they are found on the default path.
        timeout_s: time limit of one command in seconds.
        held_open: a descriptor that each command inherits, so that a command that outlives a killed hook is detected.
    """

    def __init__(self, folder: Path | None = None, *, timeout_s: float = 60.0, held_open: int | None = None) -> None:
        self._folder = folder
        self._timeout_s = timeout_s
        self._held_open = () if held_open is None else (held_open,)
        self._environment = {"PATH": PATH, "LANG": "C.UTF-8"} | {
            name: os.environ[name] for name in VARIABLES if name in os.environ
        }

    def job(self, job_id: str) -> SlurmJob | None:
        """Return one job as the controller knows it; None: the controller does not know it, or no longer.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        try:
            answer = self._json("scontrol", "show", "job", number(job_id), "--json")
        except SlurmRefused as error:
            if UNKNOWN_JOB in str(error).lower():
                return None
            raise
        try:
            found = [read_job(raw) for raw in answer.get("jobs", ())]
        except ValueError as error:
            raise SlurmRefused(f"scontrol show job {job_id} --json: {error}") from None
        return next((one for one in found if one.job_id == job_id or str(one.raw.get("job_id")) == job_id), None)

    def find(self, word: str) -> list[str]:
        """Return the jobs, including ended jobs in memory, whose comment ends with `word`.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        output = self._run("squeue", *_OF_ALL, "--array", "--states=all", "--format=%i|%k")
        rows = (line.partition("|") for line in output.splitlines())
        return [job for job, _, comment in rows if JOB_ID.fullmatch(job) and comment.split()[-1:] == [word]]

    def failed_jobs(self) -> list[tuple[str, int]]:
        """Return the failed jobs in memory, each with its number of restarts.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        wanted = "--Format=JobArrayID:64,RestartCnt:16"
        output = self._run("squeue", *_OF_ALL, "--array", f"--states={FAILED}", wanted)
        rows = (line.split() for line in output.splitlines())
        return [
            (row[0], int(row[1])) for row in rows if len(row) == ROW and JOB_ID.fullmatch(row[0]) and row[1].isdigit()
        ]

    def nodes(self) -> dict[str, frozenset[str]]:
        """Return the nodes of each partition.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        found: dict[str, set[str]] = {}
        for line in self._run("sinfo", *_OF_ALL, "--Node", "--format=%N|%R").splitlines():
            node, _, partition = line.partition("|")
            found.setdefault(partition.strip(), set()).add(node.strip())
        return {partition: frozenset(nodes) for partition, nodes in found.items()}

    def memory_s(self) -> int:
        """Return how long the controller keeps an ended job: MinJobAge, in seconds.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        found = re.search(r"^MinJobAge\s*=\s*(\d+)", self._run("scontrol", "show", "config"), re.MULTILINE)
        return int(found[1]) if found else 300

    def script(self, job_id: str) -> str:
        """Return the batch script of a job in memory; bytes that are not UTF-8 are lone surrogates, as in `submit`.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        return self._run("scontrol", "write", "batch_script", number(job_id), "-", errors="surrogateescape")

    def requeue_on_hold(self, job_id: str) -> None:
        """Requeue an ended job, on hold.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        self._run("scontrol", "requeuehold", number(job_id))

    def update(self, job_id: str, changes: Mapping[str, str]) -> None:
        """Change a pending job; the fields are named as in `scontrol update`.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        words = [f"{name}={argument(value)}" for name, value in changes.items()]
        self._run("scontrol", "update", f"JobId={number(job_id)}", *words)

    def release(self, job_id: str) -> None:
        """Release a held job.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        self._run("scontrol", "release", number(job_id))

    def submit(self, script: str, options: Sequence[str], *, folder: str = "", environment: bytes | None = None) -> str:
        """Submit a batch job and return its id.

        Args:
            script: the batch script.
            options: the options of sbatch.
            folder: the working directory of the submission, which the job sees as SLURM_SUBMIT_DIR.
            environment: the job's variables, each `NAME=value` followed by a null byte; None: as the options specify.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        arguments = [argument(option) for option in options]
        if environment is None:
            output = self._run("sbatch", "--parsable", *arguments, given=script, folder=folder)
        else:
            # Only these variables: any other, including PATH, would be passed to the job.
            with tempfile.TemporaryFile() as file:
                file.write(environment)
                file.seek(0)
                handed = f"--export-file={file.fileno()}"
                output = self._run(
                    "sbatch", "--parsable", *arguments, handed, given=script, folder=folder, fd=file.fileno()
                )
        job = output.strip().splitlines()[-1].partition(";")[0] if output.strip() else ""
        if JOB_ID.fullmatch(job) is None:
            raise SchedulerUnavailable(f"sbatch printed no job id: {output.strip()[:200]}")
        return job

    def _json(self, *command: str) -> Mapping[str, Any]:
        output = self._run(*command)
        try:
            answer = json.loads(output)
        except ValueError:
            raise SlurmRefused(
                f"{' '.join(command)}: expected JSON (Slurm 23.02 or later), got {output[:100]}"
            ) from None
        return answer if isinstance(answer, dict) else {}

    def _run(
        self,
        tool: str,
        *arguments: str,
        given: str = "",
        folder: str = "",
        fd: int | None = None,
        errors: str = "replace",
    ) -> str:
        program = shutil.which(tool, path=PATH if self._folder is None else str(self._folder)) or tool
        bare = {name: value for name, value in self._environment.items() if name in VARIABLES}
        try:
            done = subprocess.run(  # noqa: S603 - checked arguments, no shell
                [program, *arguments],
                input=given.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=self._timeout_s,
                check=False,
                env=self._environment if fd is None else bare,
                cwd=folder if os.access(folder, os.X_OK) else "/",
                pass_fds=self._held_open if fd is None else (*self._held_open, fd),
            )
        except subprocess.TimeoutExpired:
            raise SchedulerUnavailable(f"{tool}: no answer within {self._timeout_s:g} s") from None
        except OSError as error:
            raise SchedulerUnavailable(f"{program}: {error.strerror}") from None
        if done.returncode == 0:
            return done.stdout.decode("utf-8", errors)
        text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
        output = " ".join((text or f"exit code {done.returncode}").split())[:500]
        if any(words in output.lower() for words in AWAY) or done.returncode < 0:
            raise SchedulerUnavailable(f"{tool}: {output}")
        raise SlurmRefused(f"{tool}: {output}")


def number(job_id: str) -> str:
    """Return a validated job number.

    Raises:
        SlurmRefused: it is not a job number.
    """
    if JOB_ID.fullmatch(job_id) is None:
        raise SlurmRefused(f"{job_id[:50]!r} is not a job id")
    return job_id


def argument(value: str) -> str:
    """Return text that is valid as a command-line argument.

    Raises:
        SlurmRefused: it contains characters that an argument can't contain.
    """
    if "\0" in value or "\n" in value:
        raise SlurmRefused(f"{value[:50]!r} can't be an argument")
    return value
