"""The ended attempts that the automation handles."""

from dataclasses import dataclass

from classifiers.contracts import Verdict
from service.contracts.event import JobCompletion


@dataclass(frozen=True, slots=True)
class DiagnosedAttempt:
    """A diagnosed attempt: `attempt_id` is its row, `failure_id` the failure that it opened or joined."""

    attempt_id: int
    failure_id: int
    event: JobCompletion
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class EndedAttempt:
    """An attempt with any end; `verdict` and `failure_id` are set if it was diagnosed."""

    attempt_id: int
    event: JobCompletion
    verdict: Verdict | None = None
    failure_id: int | None = None

    def diagnosed(self) -> DiagnosedAttempt | None:
        """The attempt with its verdict; None if it was not diagnosed."""
        if self.verdict is None or self.failure_id is None:
            return None
        return DiagnosedAttempt(self.attempt_id, self.failure_id, self.event, self.verdict)
