"""What every hook shares: a request, what a scheduler says of it, and the protocol of a scheduler.

How the parts meet: the runner leases requests from the service, asks the scheduler's `inspect` about each one, writes its
intent to disk, lets `execute` do it, writes what became of it, and tells the service. After a crash it asks `inspect` again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

Action = Literal["requeue", "submit"]
Result = Literal["done", "already_done", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Request:
    """One thing to do, as leased.

    Attributes:
        request_id: 1 to 64 of `A-Za-z0-9_-`; goes into file names, comments and labels, and is checked for that.
        lease_token: what acknowledges it; never logged.
        job_id: the scheduler's own (`123_4` for an array's task, `namespace/kind/name` on Kubernetes).
        attempt: which end of the job this is about; None: not known.
        exclude_nodes: nodes that it must not run on.
        changes: what to ask for instead, such as {"memory_bytes": 8589934592}.
        not_before: it must not start earlier.
        reasons: why, for people.
        good_until: the lease's end by this machine's clock, safely early: nothing is begun after it.
        extra: every other field that the service sent.
    """

    request_id: str
    lease_token: str = field(repr=False)
    cluster: str
    job_id: str
    attempt: int | None
    action: Action
    good_until: datetime
    exclude_nodes: tuple[str, ...] = ()
    resume_from: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    reasons: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """Nothing stands against it.

    Attributes:
        would: what acting will do, in words, for the log and for a dry run.
        begun: an earlier try of this request got half-way (a job is held for it ...); acting does the rest.
    """

    action_text: str
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do, now and later. `new_job_id`: the job that runs for it, if one does."""

    result: Result
    detail: str
    new_job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be done and nothing was changed. `retry_after_s`: when to try again; None: never."""

    error: str
    retry_after_s: float | None = None


class SchedulerUnavailable(Exception):
    """The scheduler does not answer, or not in time; whether something was changed is not known. Says what it said."""


class LeaseExpired(Exception):
    """The lease ended before the next step: that step was not taken."""


class Lease(Protocol):
    """The right to act, which ends."""

    def check(self) -> None:
        """Return while it lasts; to be called right before each step that changes something.

        Raises:
            LeaseExpired: it has ended.
        """
        ...


class Scheduler(Protocol):
    """One scheduler, as hooks see it. Used from one thread."""

    kind: str
    """`slurm`, `kubernetes`, `command`."""

    can_look_up: bool
    """Whether `inspect` can tell by request id if a request was carried out. False: after a crash it is `unknown`."""

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        """What the scheduler says of a request; changes nothing.

        Args:
            request: what to look for.
            begun_at: when an earlier try of this very request was begun whose end is not known; None: there was none.
                Begun and found by its request id: Settled("done"). Begun in part: Go, and `execute` does the rest. Begun
                and so long ago that its absence proves nothing: Settled("unknown").

        Raises:
            SchedulerUnavailable: no answer.
        """
        ...

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        """Do it, or what is left of it: safe to call again after a crash, as long as `inspect` said Go.

        Raises:
            SchedulerUnavailable: no answer; the runner looks again later.
            LeaseExpired: out of `lease.check()`.
        """
        ...

    def maintain(self) -> None:
        """What has to be done beside requests, before each round (saving scripts ...).

        Raises:
            SchedulerUnavailable: no answer; requests are tried all the same.
        """
        ...

    def close(self) -> None:
        """Give back what is open."""
        ...
