"""Remembers the failures of a Job's deleted pods, since the Job itself reports only BackoffLimitExceeded.

The size is limited: the latest Jobs, the latest pods of each Job, and logs of the latest failures only.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from service.contracts.event import JobCompletion, Status

JOBS_MOST = 5_000
PODS_MOST = 16
LOGGED_MOST = 32
# Pods with these statuses were terminated from outside, which may also have terminated the other pods of the Job.
DISRUPTED = frozenset({Status.PREEMPTED, Status.EVICTED, Status.NODE_FAIL})
# Reasons of a Job that only summarize the results of its pods.
COUNTED = frozenset({"BackoffLimitExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"})


@dataclass(frozen=True, slots=True)
class PodEnd:
    """The end of one pod: its event, and when the pod was created."""

    uid: str
    created_at: datetime
    event: JobCompletion


class PodEndHistory:
    """Completions of pods by the uid of their Job and the job id of other controllers, and what pods wait for."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, OrderedDict[str, PodEnd]] = OrderedDict()
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self._logged: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._owners: OrderedDict[str, str] = OrderedDict()

    def put(self, job: str, end: PodEnd) -> None:
        """Record the failure of a pod of a Job (given by its uid) or of another controller (by its job id)."""
        pods = self._ends.setdefault(job, OrderedDict())
        pods[end.uid] = end
        self._ends.move_to_end(job)
        self._logged[job, end.uid] = None
        while len(pods) > PODS_MOST:
            pods.popitem(last=False)
        while len(self._ends) > JOBS_MOST:
            self._ends.popitem(last=False)
        while len(self._logged) > LOGGED_MOST:
            (old_job, old), _ = self._logged.popitem(last=False)
            pods = self._ends.get(old_job, OrderedDict())
            if (before := pods.get(old)) is not None:
                pods[old] = PodEnd(before.uid, before.created_at, before.event.model_copy(update={"logs": ()}))

    def wait(self, job: str, what: str) -> None:
        """Record that a pod of a Job is waiting, for example for its image or configuration."""
        self._waiting[job] = what
        self._waiting.move_to_end(job)
        while len(self._waiting) > JOBS_MOST:
            self._waiting.popitem(last=False)

    def join(self, job: str, owner: str) -> None:
        """Record the job id of the outermost controller of a Job (given by its uid)."""
        self._owners[job] = owner
        self._owners.move_to_end(job)
        while len(self._owners) > JOBS_MOST:
            self._owners.popitem(last=False)

    def owner(self, job: str) -> str | None:
        """Return the job id of the outermost controller of a Job; None if the Job was not seen."""
        return self._owners.get(job)

    def of(self, job: str) -> list[PodEnd]:
        """Return the remembered completions of a Job's pods."""
        return list(self._ends.get(job, {}).values())

    def waiting(self, job: str) -> str | None:
        """Return the last waiting reason of the Job's pods."""
        return self._waiting.get(job)

    def forget(self, job: str) -> None:
        """Forget a deleted Job, but not its owner: the ends of its pods may come later."""
        self._ends.pop(job, None)
        self._waiting.pop(job, None)


def root(ends: Sequence[PodEnd]) -> PodEnd | None:
    """Return the decisive pod of a Job: of the last try, the one disrupted from outside, else the first that failed."""
    if not ends:
        return None
    last = max(end.created_at for end in ends)
    tried = [end for end in ends if end.event.ended_at >= last]
    return min(tried or ends, key=lambda end: (end.event.status not in DISRUPTED, end.event.ended_at))


def with_root(event: JobCompletion, end: PodEnd | None, waiting: str | None, *, summary: bool = False) -> JobCompletion:
    """Return a Job's completion with the evidence of its decisive pod, or the waiting reasons until its deadline.

    `summary`: whatever its reason is, the completion only summarizes the results of its pods.
    """
    if end is None or not (summary or event.reason in COUNTED):
        if waiting is None or event.status is not Status.TIMEOUT:
            return event
        return event.model_copy(update={"message": f"{event.message or ''}\n{waiting}".strip()})
    pod = event_words(event), end.event.message
    return event.model_copy(
        update={
            "status": end.event.status if event.status is Status.FAILED else event.status,
            "exit_code": end.event.exit_code,
            "signal": end.event.signal,
            "reason": end.event.reason or event.reason,
            "message": "\n".join(part for part in pod if part) or None,
            "nodes": end.event.nodes,
            "logs": (*event.logs, *end.event.logs),
            "node_events": end.event.node_events,
        }
    )


def event_words(event: JobCompletion) -> str | None:
    """Return `reason: message` of a completion."""
    return ": ".join(part for part in (event.reason, event.message) if part) or None
