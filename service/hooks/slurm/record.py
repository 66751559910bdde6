"""Parses a job from the output of `scontrol show job --json` (data_parser v0.0.40 and later; tested on Slurm 24.11)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# Base states that are final; https://slurm.schedmd.com/job_state_codes.html. The list also contains flags.
ENDS = frozenset(
    {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"}
)
REQUEUED_ON_HOLD = "job requeued in held state"
HELD_BY_ADMINISTRATOR = "JobHeldAdmin"  # after `requeuehold`, also by root, the reason is JobHeldUser


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """The job fields that the hook reads. `raw`: the whole record. `job_id`: `123`, or `123_4` for an array task."""

    job_id: str
    states: tuple[str, ...]
    reason: str
    description: str
    restarts: int
    held: bool
    submitted_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    comment: str
    user: str
    batch: bool
    may_requeue: bool
    partition: str
    node_count: int
    excluded: str
    required: str
    heterogeneous: bool
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def end(self) -> str | None:
        """The final state; None: the job is pending or running."""
        return next((state for state in self.states if state in ENDS), None)

    @property
    def completing(self) -> bool:
        """Whether the job has ended and is still being cleaned up."""
        return "COMPLETING" in self.states

    @property
    def expedited(self) -> bool:
        """Whether Slurm restarts the job automatically and at once (`--requeue=expedite`, Slurm 25.11)."""
        return "EXPEDITING" in self.states

    @property
    def waits_on_hold(self) -> bool:
        """Whether the job was requeued and is on hold."""
        return "PENDING" in self.states and self.held

    @property
    def held_by_administrator(self) -> bool:
        """Whether the job waits because an administrator put it on hold (`scontrol hold`)."""
        return self.waits_on_hold and self.reason == HELD_BY_ADMINISTRATOR


def read_job(raw: Mapping[str, Any]) -> SlurmJob:
    """Parse one entry of `jobs`.

    Raises:
        ValueError: it is not a job record; the message names the field.
    """
    states = raw.get("job_state")
    states = [states] if isinstance(states, str) else states
    if not isinstance(states, list) or not states:
        raise ValueError("job_state: expected a list of states")
    number = whole(raw, "job_id")
    if not number:
        raise ValueError("job_id: expected a number")
    array, task = whole(raw, "array_job_id"), whole(raw, "array_task_id")
    return SlurmJob(
        job_id=f"{array}_{task}" if array and task is not None else str(number),
        states=tuple(str(state) for state in states),
        reason=text(raw, "state_reason"),
        description=text(raw, "state_description"),
        restarts=whole(raw, "restart_cnt") or 0,
        held=raw.get("hold") is True,
        submitted_at=_time(raw, "submit_time"),
        started_at=_time(raw, "start_time"),
        ended_at=_time(raw, "end_time"),
        comment=text(raw, "comment"),
        user=text(raw, "user_name"),
        batch=raw.get("batch_flag") is not False,
        may_requeue=raw.get("requeue") is not False,
        partition=text(raw, "partition"),
        node_count=whole(raw, "node_count") or 1,
        excluded=text(raw, "excluded_nodes"),
        required=text(raw, "required_nodes"),
        heterogeneous=bool(whole(raw, "het_job_id")),
        raw=raw,
    )


def whole(raw: Mapping[str, Any], key: str) -> int | None:
    """Return a number, given plainly or as {set, infinite, number}; None: not set, or unlimited."""
    value = raw.get(key)
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set") and not value.get("infinite") else None
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def text(raw: Mapping[str, Any], key: str) -> str:
    """Return a text; empty if there is none."""
    value = raw.get(key)
    if isinstance(value, list):
        value = ",".join(str(one) for one in value)
    return value if isinstance(value, str) else ""


def _time(raw: Mapping[str, Any], key: str) -> datetime | None:
    seconds = whole(raw, key)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
