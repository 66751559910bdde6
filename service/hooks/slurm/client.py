"""The Slurm client interface of the hook, implemented by the commands (`tools`) and slurmrestd (`rest`)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from service.hooks.slurm.record import SlurmJob


class SlurmClient(Protocol):
    """A cluster. Each method raises SchedulerUnavailable if it does not answer, and SlurmRefused if Slurm rejects."""

    def job(self, job_id: str) -> SlurmJob | None:
        """Return one job as the controller knows it; None: the controller does not know it, or no longer."""
        ...

    def find(self, word: str) -> list[str]:
        """Return the jobs, including ended jobs in memory, whose comment ends with `word`."""
        ...

    def failed_jobs(self) -> list[tuple[str, int]]:
        """Return the failed jobs in memory, each with its number of restarts."""
        ...

    def nodes(self) -> dict[str, frozenset[str]]:
        """Return the nodes of each partition."""
        ...

    def memory_s(self) -> int:
        """Return how long the controller keeps an ended job: MinJobAge, in seconds."""
        ...

    def script(self, job_id: str) -> str:
        """Return the batch script of a job in memory."""
        ...

    def requeue_on_hold(self, job_id: str) -> None:
        """Requeue an ended job, on hold."""
        ...

    def update(self, job_id: str, changes: Mapping[str, str]) -> None:
        """Change a pending job; the fields are named as in `scontrol update`."""
        ...

    def release(self, job_id: str) -> None:
        """Release a held job."""
        ...

    def submit(self, script: str, options: Sequence[str], *, folder: str = "", environment: bytes | None = None) -> str:
        """Submit a batch job and return its id. `options` are those of sbatch, each `--name=value` or `--name`."""
        ...
