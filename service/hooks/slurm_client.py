"""What the hook asks of a Slurm cluster; the commands (`slurm_tools`) and slurmrestd (`slurm_rest`) both answer it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from service.hooks.slurm_record import SlurmJob


class SlurmClient(Protocol):
    """A cluster. Each method raises SchedulerUnavailable where nobody answers, and SlurmRefused where Slurm said no."""

    def job(self, job_id: str) -> SlurmJob | None:
        """One job as the controller knows it; None: it does not, or not any more."""
        ...

    def find(self, word: str) -> list[str]:
        """The jobs, ended ones in memory too, whose comment's last word is `word`."""
        ...

    def ended_badly(self) -> list[tuple[str, int]]:
        """Jobs in memory that failed, each with how often it was restarted."""
        ...

    def nodes(self) -> dict[str, frozenset[str]]:
        """The nodes of each partition."""
        ...

    def memory_s(self) -> int:
        """How long an ended job is known: MinJobAge, in seconds."""
        ...

    def script(self, job_id: str) -> str:
        """The batch script of a job in memory."""
        ...

    def requeue_on_hold(self, job_id: str) -> None:
        """Put an ended job back into the queue, on hold."""
        ...

    def update(self, job_id: str, changes: Mapping[str, str]) -> None:
        """Change a waiting job: fields as `scontrol update` names them."""
        ...

    def release(self, job_id: str) -> None:
        """Let a held job start."""
        ...

    def submit(self, script: str, options: Sequence[str], *, folder: str = "", environment: bytes | None = None) -> str:
        """Submit a new batch job; its id. `options` are sbatch's, each one `--name=value` or `--name`."""
        ...
