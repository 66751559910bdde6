"""What to ask for differently next time, where the request was too small."""

import math
from typing import Any

from classifiers.contracts import JobFacts, Verdict
from service.recommend.facts import Facts
from service.recommend.policy_settings import Requests

GIB = 2**30
_DEVICE_MEMORY = "DL.1"
_HOST_MEMORY = "DL.4"


def changes(verdict: Verdict, job: JobFacts, facts: Facts, settings: Requests) -> dict[str, Any]:
    """Requests to change, by the name that hooks know: `memory_bytes`, `time_limit_s`, `batch_factor`.

    memory_bytes: after the kernel killed the job for its memory, in whole GiB. time_limit_s: after a job ran into its
    limit while it made progress, in whole minutes. batch_factor: of the batch, after a device ran out of memory.
    """
    out: dict[str, Any] = {}
    killed = job.status == "out_of_memory" or (verdict.category == _HOST_MEMORY and job.signal == 9)  # noqa: PLR2004 - SIGKILL
    if killed and facts.memory_requested:
        out["memory_bytes"] = math.ceil(facts.memory_requested * settings.memory_factor / GIB) * GIB
    progress = verdict.progress
    moving = progress is not None and (progress.step is not None or progress.checkpoint is not None)
    if job.status == "timeout" and job.time_limit_s and moving and verdict.side == "user":
        out["time_limit_s"] = math.ceil(job.time_limit_s * settings.time_factor / 60) * 60
    if verdict.category == _DEVICE_MEMORY and job.status != "out_of_memory":
        out["batch_factor"] = settings.batch_factor
    return out


def in_words(told: dict[str, Any], facts: Facts, job: JobFacts) -> dict[str, str]:
    """The changes as slots for texts; empty where there is nothing to say."""
    memory, limit, batch = told.get("memory_bytes"), told.get("time_limit_s"), told.get("batch_factor")
    return {
        "memory": f"{memory / GIB:.0f} GiB" if memory else "",
        "memory_now": f"{facts.memory_requested / GIB:.3g} GiB" if facts.memory_requested else "",
        "time_limit": f"{limit / 3600:.3g} hours" if limit else "",
        "time_limit_now": f"{job.time_limit_s / 3600:.3g} hours" if job.time_limit_s else "",
        "batch": f"{batch:.0%}" if batch else "",
    }
