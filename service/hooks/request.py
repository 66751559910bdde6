"""Types that all hooks share: a request, the scheduler's assessment of it, and the scheduler protocol.

Sequence: the runner leases requests from the service and calls the scheduler's `inspect` for each one, writes its
intent to disk, calls `execute`, writes the outcome to disk and reports it to the service. After a crash the runner
calls `inspect` again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from service.contracts.advice import OPT_IN_LABEL, AckResult, ActionKind
from service.times import instant_of


@dataclass(frozen=True, slots=True)
class Request:
    """One leased resubmission request.

    Attributes:
        request_id: 1 to 64 of `A-Za-z0-9_-`; used in file names, comments and labels, and checked for that.
        lease_token: acknowledges the request; never logged.
        job_id: the scheduler's job id (`123_4` for an array task, `namespace/kind/name` on Kubernetes).
        attempt: the attempt of the job that failed; None: not known.
        exclude_nodes: nodes the job must not run on.
        changes: changed resource requests, such as {"memory_bytes": 8589934592}.
        not_before: earliest start time.
        reasons: the reasons, for people.
        good_until: end of the lease by this machine's clock, minus a safety margin; no action starts after it.
        extra: all other fields sent by the service.
    """

    request_id: str
    lease_token: str = field(repr=False)
    cluster: str
    job_id: str
    attempt: int | None
    action: ActionKind
    good_until: datetime
    exclude_nodes: tuple[str, ...] = ()
    resume_from: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    not_before: datetime | None = None
    reasons: tuple[Any, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def lease_count(self) -> int:
        """How often it was leased, this time included; 1 if the service does not say."""
        count = self.extra.get("lease_count")
        return count if isinstance(count, int) else 1

    @property
    def ended_before(self) -> datetime | None:
        """A time at which the failed attempt had ended; None: the service does not say."""
        return instant_of(self.extra.get("ended_before"))

    def exclusion(self) -> str:
        """The end of a sentence that names the excluded nodes, empty without any."""
        return f" without {', '.join(self.exclude_nodes)}" if self.exclude_nodes else ""


@dataclass(frozen=True, slots=True)
class Ready:
    """The request can be executed.

    Attributes:
        action_text: description of the action, for the log and for dry runs.
        begun: an earlier attempt was interrupted (for example, a job is on hold for it); `execute` completes it.
    """

    action_text: str
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The final outcome of a request. `new_job_id`: the job started for it, if any."""

    result: AckResult
    detail: str
    new_job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The request failed and nothing was changed. `retry_after_s`: seconds until the next try; None: do not retry."""

    error: str
    retry_after_s: float | None = None


class SchedulerUnavailable(Exception):
    """The scheduler did not answer in time; whether anything was changed is not known."""


class LeaseExpired(Exception):
    """The lease expired before the next step; that step was not taken."""


class Lease(Protocol):
    """A time-limited right to act on a request."""

    def check(self, takes_s: float = 0.0) -> None:
        """Return if the lease is valid; to be called immediately before each step that changes something.

        Args:
            takes_s: seconds that the step may take. One that would end after the lease could be taken a second time by
                the next holder, who does not find it yet.

        Raises:
            LeaseExpired: the lease has expired, or would during the step.
        """
        ...


class Scheduler(Protocol):
    """The scheduler interface used by hooks. Called from one thread."""

    kind: str
    """`slurm`, `kubernetes`, `command`."""

    can_look_up: bool
    """Whether `inspect` can find an executed request by its id. If not, requests are `unknown` after a crash."""

    def inspect(self, request: Request, *, begun_at: datetime | None) -> Ready | Settled | Failed:
        """Check whether a request can be executed; changes nothing.

        Args:
            request: the request.
            begun_at: start of an earlier attempt of this request with unknown outcome; None: there was none.
                If it is found by its request id: Settled("done"). If it was interrupted: Ready, and `execute` completes
                it. If it is too long ago to prove anything: Settled("unknown").

        Raises:
            SchedulerUnavailable: the scheduler does not answer.
        """
        ...

    def execute(self, request: Request, lease: Lease) -> Settled | Failed:
        """Execute or complete the request; safe to call again after a crash if `inspect` returned Ready.

        Raises:
            SchedulerUnavailable: the scheduler does not answer; the runner inspects again later.
            LeaseExpired: raised by `lease.check()`.
        """
        ...

    def maintain(self) -> None:
        """Run maintenance before each round, such as saving job scripts.

        Raises:
            SchedulerUnavailable: the scheduler does not answer; requests are tried nevertheless.
        """
        ...

    def close(self) -> None:
        """Release resources."""
        ...


def opt_in_objection(request: Request, owner_mode: str | None, source: str, *, separator: str) -> str | None:
    """What the owner of a job has against the request, None if nothing.

    Args:
        request: the request.
        owner_mode: the value of OPT_IN_LABEL on the job; None: it has none.
        source: where the label is written, for the text.
        separator: what is written between the label and its value there.
    """
    if owner_mode in {"never", "advise"}:
        return f"{source} says {OPT_IN_LABEL}{separator}{owner_mode}"
    if request.extra.get("ask_scheduler") is True and owner_mode != "auto":
        return f"{source} does not say {OPT_IN_LABEL}{separator}auto"
    return None
