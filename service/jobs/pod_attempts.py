"""Kubernetes: a Pod's failure under a Job is an attempt of the Job, not a second failure. Pure.

The rows of one controller (same cluster and job_id, where at least one row names its pod) fall into *runs*: a name
can be deleted and reused, so the controller's own end closes a run, and a pod that began before that end belongs
to it unless it ended before the controller was created. Other pods belong to a run whose end is still to come, or never
comes; one that was created long after all others had ended is of a later controller with the same name.

In each run
- exactly one row is counted: the controller's own, otherwise the first diagnosed pod's, otherwise the first pod's;
- the first diagnosed row opens a failure and the later diagnosed ones join it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.jobs.same_job import RESUBMITTED_WITHIN
from service.times import bounded

# The end of a controller and the start of its last pod come from different clocks.
CLOCK_SLACK = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Member:
    """One row of a controller, stored or new. `failure_id` None: none, or not yet decided (`new`).

    `created`: when the pod or controller was created, if it is known.
    """

    id: int
    own: bool
    began: datetime
    ended: datetime
    diagnosed: bool
    counted: bool = False
    failure_id: int | None = None
    new: bool = False
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """Result for one row: whether it is counted, its failure, and whether it opens that failure."""

    counted: bool
    failure_id: int | None
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Assignments:
    """`places` by row id, for every member; `stands_for`: the counted row of each failure's run, by failure id."""

    places: dict[int, Assignment]
    stands_for: dict[int, int]


def assign(members: Sequence[Member]) -> Assignments:
    """Assign all rows of one controller, stored and new, to failures; ids increase in order of arrival."""
    ordered = sorted(members, key=lambda member: member.id)
    places: dict[int, Assignment] = {}
    stands_for: dict[int, int] = {}
    for run in _runs(ordered):
        counted = _counted(run)
        failure_id = next((member.failure_id for member in run if member.failure_id is not None), None)
        for member in run:
            opens = False
            if member.new and member.diagnosed and failure_id is None:
                failure_id, opens = member.id, True
            own = failure_id if member.new and member.diagnosed else member.failure_id
            places[member.id] = Assignment(member is counted, own, opens)
        for joined in (failure_id, *(member.failure_id for member in run)):
            if joined is not None:
                stands_for.setdefault(joined, counted.id)
    return Assignments(places, stands_for)


def _runs(ordered: Sequence[Member]) -> list[list[Member]]:
    ends = sorted((member for member in ordered if member.own), key=lambda member: (member.ended, member.id))
    runs: list[list[Member]] = [[end] for end in ends]
    still_open: list[Member] = []
    for member in ordered:
        if member.own:
            continue
        at = next((n for n, end in enumerate(ends) if _is_pod_of(member, end)), None)
        (still_open if at is None else runs[at]).append(member)
    return [sorted(run, key=lambda member: member.id) for run in [*runs, *_generations(still_open)] if run]


def _is_pod_of(pod: Member, end: Member) -> bool:
    if end.created is not None and bounded(pod.ended) < bounded(end.created) - CLOCK_SLACK:
        return False
    return bounded(pod.began) <= bounded(end.ended) + CLOCK_SLACK


def _generations(pods: Sequence[Member]) -> list[list[Member]]:
    """Pods without an end of their controller, by controller: each replaces another pod soon after its end."""
    generations: list[list[Member]] = []
    last_end: datetime | None = None
    for pod in sorted(pods, key=lambda pod: (pod.created or pod.began, pod.id)):
        ended = bounded(pod.ended)
        if last_end is None or (pod.created is not None and bounded(pod.created) - last_end > RESUBMITTED_WITHIN):
            generations.append([])
            last_end = ended
        generations[-1].append(pod)
        last_end = max(last_end, ended)
    return generations


def _counted(run: Sequence[Member]) -> Member:
    own = next((member for member in run if member.own), None)
    failed = next((member for member in run if member.diagnosed), None)
    return own or failed or run[0]
