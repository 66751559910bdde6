"""Whether two attempts with the same job id are of the same job: clusters use a job id again. Pure.

A job is identified by its cluster, id, user and name, and by when it was submitted or started. Restarts by a scheduler
keep user and name. They keep the submit time, raise the restart count, or are submitted again at the end of the attempt
before.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

# Judgement. A requeue is submitted when the attempt before ends; clocks and epilogues need a while.
RESUBMITTED_WITHIN = timedelta(hours=1)
# Without submit times: the longest time that a restarted job waits in a queue.
RESTARTED_WITHIN = timedelta(days=14)


class Run(Protocol):
    """The facts of an attempt that identify its job."""

    @property
    def user(self) -> str | None:
        """The owner."""

    @property
    def name(self) -> str | None:
        """The name of the job."""

    @property
    def pod(self) -> str | None:
        """The pod of a Kubernetes controller, whose name and user may differ from the controller's."""

    @property
    def attempt(self) -> int | None:
        """The restart count or retry index."""

    @property
    def submitted_at(self) -> datetime | None:
        """When it was submitted."""

    @property
    def started_at(self) -> datetime | None:
        """When it started."""

    @property
    def ended_at(self) -> datetime:
        """When it ended."""


AnyRun = TypeVar("AnyRun", bound=Run)


def same_job(one: Run, other: Run) -> bool:
    """Whether two attempts with the same cluster and job id are of the same job."""
    if one.pod is None and other.pod is None and (_differ(one.user, other.user) or _differ(one.name, other.name)):
        return False
    first, second = sorted((one, other), key=lambda run: run.ended_at)
    if first.submitted_at is not None and first.submitted_at == second.submitted_at:
        return True
    if (second.attempt or 0) > (first.attempt or 0):
        return _began(second) - first.ended_at <= RESTARTED_WITHIN
    if second.submitted_at is not None:
        return second.submitted_at - first.ended_at <= RESUBMITTED_WITHIN
    return _began(second) - first.ended_at <= RESTARTED_WITHIN


def runs_of_job(runs: Sequence[AnyRun], own: AnyRun) -> tuple[AnyRun, ...]:
    """The attempts of the job of `own` among attempts with its cluster and job id, in their order.

    Neighbours in time are compared, so that a job with many restarts stays one job.
    """
    ordered = sorted(runs, key=lambda run: run.ended_at)
    at = next((number for number, run in enumerate(ordered) if run is own), None)
    if at is None:
        return tuple(run for run in runs if same_job(run, own))
    chosen = [own]
    for direction in (ordered[at + 1 :], ordered[:at][::-1]):
        last = own
        for run in direction:
            if same_job(last, run):
                chosen.append(run)
                last = run
    same = {id(run) for run in chosen}  # each of its own: two runs may be equal, and a job may have thousands
    return tuple(run for run in runs if id(run) in same)


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _began(run: Run) -> datetime:
    return run.submitted_at or run.started_at or run.ended_at
