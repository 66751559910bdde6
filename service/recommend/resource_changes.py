"""Larger resource requests for the next attempt, after a request was too small."""

import math
from typing import Any

from classifiers.contracts import JobFacts, Verdict
from service.recommend.facts import Facts
from service.recommend.policy_settings import Requests

GIB = 2**30
_DEVICE_MEMORY = "DL.1"
_HOST_MEMORY = "DL.4"


def larger_requests(verdict: Verdict, job: JobFacts, facts: Facts, settings: Requests) -> dict[str, Any]:
    """The requests to change, under the names of the hook protocol: `memory_bytes`, `time_limit_s`, `batch_factor`.

    memory_bytes: after the kernel killed the job for its memory use, in whole GiB. time_limit_s: after a job that made
    progress reached its limit, in whole minutes. batch_factor: of the batch size, after a device ran out of memory.
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


def text_slots(changes: dict[str, Any], facts: Facts, job: JobFacts) -> dict[str, str]:
    """The changes as slots of texts; empty where nothing changes."""
    memory, limit, batch = changes.get("memory_bytes"), changes.get("time_limit_s"), changes.get("batch_factor")
    return {
        "memory": f"{memory / GIB:.0f} GiB" if memory else "",
        "memory_now": f"{facts.memory_requested / GIB:.3g} GiB" if facts.memory_requested else "",
        "time_limit": f"{limit / 3600:.3g} hours" if limit else "",
        "time_limit_now": f"{job.time_limit_s / 3600:.3g} hours" if job.time_limit_s else "",
        "batch": f"{batch:.0%}" if batch else "",
    }
