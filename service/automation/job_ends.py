"""What the automation is told of each attempt that ended."""

from dataclasses import dataclass

from classifiers.contracts import Verdict
from service.contracts.event import JobCompletion


@dataclass(frozen=True, slots=True)
class DiagnosedAttempt:
    """A diagnosed attempt: `attempt_id` is its row, `failure_id` the failure it opens or joins."""

    attempt_id: int
    failure_id: int
    event: JobCompletion
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt that ended, however; `verdict` and `failure_id` where it was diagnosed."""

    attempt_id: int
    event: JobCompletion
    verdict: Verdict | None = None
    failure_id: int | None = None
