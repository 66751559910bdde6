"""The one definition of GPU-hours rescued, for the report and the policy replay."""

from datetime import datetime

from service.contracts.advice import Outcome


def gpu_hours_rescued(
    outcome: Outcome | str | None,
    *,
    gpus: int | None,
    started_at: datetime | None,
    ended_at: datetime,
    gpu_hours_lost: float,
) -> float:
    """The GPU-hours that a resubmission saved, compared with starting the job again from its beginning.

    If the resubmitted job succeeded, this is the work of the failed attempt up to its last checkpoint: its GPU-hours
    less the GPU-hours that it lost. It is 0 without a checkpoint, without a success, or if the size is unknown.
    """
    if outcome != "succeeded" or not gpus or started_at is None:
        return 0.0
    held = gpus * (ended_at - started_at).total_seconds() / 3_600
    return max(held - gpu_hours_lost, 0.0)
