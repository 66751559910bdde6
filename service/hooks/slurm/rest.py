"""The Slurm client for slurmrestd: over its Unix socket or HTTP, with a token (auth/jwt) or as the socket's own user.

Tested on Slurm 24.11 (API v0.0.42), which has no requeue, no job scripts and no configuration. Commands are used for
those, for changes to a single array task (rejected by the API), and for submissions that only `sbatch` can parse. Each
such reason is logged once.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from service.clock import Clock
from service.hooks.request import SchedulerUnavailable
from service.hooks.slurm.client import SlurmClient
from service.hooks.slurm.record import SlurmJob, read_job, text, whole
from service.hooks.slurm.rest_call import SlurmRestTransport
from service.hooks.slurm.rest_job import UnsupportedOption, changed, described
from service.hooks.slurm.tools import AWAY, JOB_ID, SlurmRefused, argument, number

log = logging.getLogger(__name__)

VERSIONS = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40")  # Slurm 26.05 down to 23.11
OK, BAD, UNAUTHORIZED, FORBIDDEN, NOT_FOUND = 200, 300, 401, 403, 404
UNKNOWN_JOB = 2017  # ESLURM_INVALID_JOB_ID
# These Slurm errors (slurm_errno.h) are rejections that changed nothing. After other errors, such as a lost
# connection, the outcome is unknown. 9000 and above: slurmrestd itself did not accept the request.
_NO = (range(2000, 3000), range(9000, 10_000))
_NOT_THE_TOKENS = ("invalid user id", "access/permission denied")
_IGNORED = "Ignoring unknown field"


class _NotAllowed(SlurmRefused):
    """The user of the token is not permitted to do this."""


class SlurmRest:
    """The Slurm client that uses slurmrestd; see `client.SlurmClient`.

    Args:
        caller: the HTTP client. The user of its token may change the jobs of others; without a token slurmrestd has to
            trust the socket's own user (rest_auth/local).
        commands: used for operations that the API does not offer.
        clock: the clock.
    """

    def __init__(self, caller: SlurmRestTransport, commands: SlurmClient, clock: Clock) -> None:
        self._caller = caller
        self._shown = caller.shown
        self._commands = commands
        self._clock = clock
        self._version: str | None = None
        self._warned: set[str] = set()

    def job(self, job_id: str) -> SlurmJob | None:
        """See `SlurmClient`."""
        answer = self._ask("GET", f"job/{number(job_id)}")
        if answer is None:
            return None
        try:
            found = [read_job(raw) for raw in answer.get("jobs") or ()]
        except ValueError as error:
            raise SlurmRefused(f"{self._shown}, job {job_id}: {error}") from None
        return next((one for one in found if one.job_id == job_id or str(one.raw.get("job_id")) == job_id), None)

    def find(self, word: str) -> list[str]:
        """See `SlurmClient`."""
        answer = self._ask("GET", "jobs/") or {}
        found: list[str] = []
        for raw in answer.get("jobs") or ():
            if isinstance(raw, dict) and text(raw, "comment").split()[-1:] == [word]:
                found.extend(_ids(raw))
        return found

    def failed_jobs(self) -> list[tuple[str, int]]:
        """See `SlurmClient`; uses the commands, as do the scripts that need this value."""
        return self._commands.failed_jobs()

    def nodes(self) -> dict[str, frozenset[str]]:
        """See `SlurmClient`."""
        found: dict[str, set[str]] = {}
        for raw in (self._ask("GET", "nodes/") or {}).get("nodes") or ():
            for partition in raw.get("partitions") or ():
                found.setdefault(str(partition), set()).add(str(raw.get("name")))
        return {partition: frozenset(nodes) for partition, nodes in found.items()}

    def memory_s(self) -> int:
        """See `SlurmClient`."""
        self._instead("the configuration is read with scontrol: this API does not return it")
        return self._commands.memory_s()

    def script(self, job_id: str) -> str:
        """See `SlurmClient`."""
        self._instead("scripts are read with scontrol: this API does not return them")
        return self._commands.script(job_id)

    def requeue_on_hold(self, job_id: str) -> None:
        """See `SlurmClient`."""
        self._instead("jobs are requeued by scontrol: before Slurm 26.05 this API can't, and its way is not used")
        self._commands.requeue_on_hold(job_id)

    def update(self, job_id: str, changes: Mapping[str, str]) -> None:
        """See `SlurmClient`."""
        if "_" in number(job_id):
            self._instead("tasks of arrays are changed by scontrol: this API refuses to change one alone")
            self._commands.update(job_id, changes)
            return
        for value in changes.values():
            argument(value)
        try:
            wanted = changed(changes, self._clock.now())
        except UnsupportedOption as error:
            self._instead(f"scontrol makes a change that this API has no field for: {error}")
            self._commands.update(job_id, changes)
            return
        try:
            self._change(job_id, wanted)
        except _NotAllowed as error:  # never stop between the steps, with a job on hold
            self._instead(f"scontrol makes changes: this token's user may not: {error}")
            self._commands.update(job_id, changes)

    def release(self, job_id: str) -> None:
        """See `SlurmClient`."""
        if "_" in number(job_id):
            self._instead("tasks of arrays are released by scontrol: this API refuses to change one alone")
            self._commands.release(job_id)
            return
        try:
            self._change(job_id, {"hold": False})
        except _NotAllowed as error:
            self._instead(f"scontrol releases: this token's user may not: {error}")
            self._commands.release(job_id)

    def submit(self, script: str, options: Sequence[str], *, folder: str = "", environment: bytes | None = None) -> str:
        """See `SlurmClient`."""
        for option in options:
            argument(option)
        try:
            wanted = described(script, options, environment, folder=folder)
        except UnsupportedOption as error:
            self._instead(f"the job is submitted with sbatch, because this API does not support it: {error}")
            return self._commands.submit(script, options, folder=folder, environment=environment)
        answer = self._ask("POST", "job/submit", {"script": script, "job": wanted})
        job = "" if answer is None else str(answer.get("job_id") or "")
        if JOB_ID.fullmatch(job) is None:
            raise SchedulerUnavailable(f"{self._shown} returned no job id")
        for words in _ignored(answer):
            log.warning("job %s: %s", job, words)
        return job

    def _change(self, job_id: str, wanted: Mapping[str, Any]) -> None:
        answer = self._ask("POST", f"job/{job_id}", wanted)
        if answer is None:
            raise SlurmRefused(f"{self._shown}: Invalid job id specified for job {job_id}")
        if ignored := _ignored(answer):
            raise SlurmRefused(f"{self._shown}: {'; '.join(ignored)}")

    def _instead(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            log.info("%s: %s", self._shown, reason)

    def _ask(self, method: str, path: str, content: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
        """Return the answer; None: slurmrestd knows no such job.

        Raises:
            SchedulerUnavailable, SlurmRefused: see `SlurmClient`.
        """
        if self._version is None:
            self._version = self._known_version()
        return self._checked(*self._caller.ask(method, f"/slurm/{self._version}/{path}", content))

    def _known_version(self) -> str:
        """Return the newest API version that both sides support."""
        for version in VERSIONS:
            status, answer = self._caller.ask("GET", f"/slurm/{version}/ping/", None)
            if status == NOT_FOUND:
                continue
            self._checked(status, answer)
            log.info("%s uses version %s", self._shown, version)
            return version
        raise SlurmRefused(f"{self._shown} supports none of {', '.join(VERSIONS)}")

    def _checked(self, status: int, answer: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if status in {UNAUTHORIZED, FORBIDDEN}:
            raise SchedulerUnavailable(f"{self._shown} does not take the token or the user ({status})")
        if answer is None:
            raise SchedulerUnavailable(f"{self._shown} answered {status} without JSON")
        errors = [one for one in answer.get("errors") or () if isinstance(one, dict)]
        if not errors:
            if OK <= status < BAD:
                return answer
            raise SchedulerUnavailable(f"{self._shown} answered {status}")
        if all(one.get("error_number") == UNKNOWN_JOB for one in errors):
            return None
        message = "; ".join(f"{one.get('error')} ({one.get('description')})" for one in errors)[:500]
        away = any(words in message.lower() for words in AWAY)
        if away or not all(any(one.get("error_number") in span for span in _NO) for one in errors):
            raise SchedulerUnavailable(f"{self._shown}: {message}")
        if any(words in message.lower() for words in _NOT_THE_TOKENS):
            raise _NotAllowed(f"{self._shown}: {message}")
        raise SlurmRefused(f"{self._shown}: {message}")


def _ids(raw: Mapping[str, Any]) -> list[str]:
    """Return the job numbers of one record: a pending array is one record with several tasks."""
    array, task, waiting = whole(raw, "array_job_id"), whole(raw, "array_task_id"), text(raw, "array_task_string")
    if array and task is None and waiting:
        return [f"{array}_{one}" for one in waiting.split(",") if one.isdecimal()]
    try:
        return [read_job(raw).job_id]
    except ValueError:
        return []


def _ignored(answer: Mapping[str, Any] | None) -> list[str]:
    """Return the ignored parts of a request, although the answer reports success."""
    notices = [one for one in (answer or {}).get("warnings") or () if isinstance(one, dict)]
    return [words for one in notices if (words := str(one.get("description"))).startswith(_IGNORED)]
