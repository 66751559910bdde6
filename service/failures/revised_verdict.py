"""New versions of the verdict of a stored failure: its event read again, its facts, and the verdict as stored."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pydantic import ValidationError

from classifiers.contracts import Verdict
from service.contracts.advice import Advice
from service.contracts.event import JobCompletion
from service.contracts.verdict_wire import wire_of
from service.db.session import UnitOfWork
from service.failures.records import AttemptLogs, FailureDetail

LEAST_CHANGE: Final = 0.05  # smaller changes of the confidence are ignored


class VerdictAdvisor(Protocol):
    """The advice that a new version needs: for a verdict and its event, without history."""

    def __call__(self, verdict: Verdict, event: JobCompletion) -> Advice:
        """The advice."""
        ...


# Called in the transaction of new versions, with the new verdict/1 of each failure by its id.
Revised = Callable[[UnitOfWork, Mapping[int, Mapping[str, Any]]], None]


class VerdictFacts(Protocol):
    """A verdict, or the row of a failure with the fields of its current one."""

    @property
    def side(self) -> str:
        """The side at fault."""

    @property
    def cause(self) -> str:
        """The code of the cause."""

    @property
    def category(self) -> str | None:
        """The code of the category."""

    @property
    def symptom(self) -> str | None:
        """The code of the symptom."""

    @property
    def retry_outlook(self) -> str | None:
        """Whether another run may succeed."""

    @property
    def abstained(self) -> bool:
        """Whether the verdict is undecided."""

    @property
    def confidence(self) -> float:
        """The probability (0..1) that the side is right."""


def logs_of_failed_attempt(detail: FailureDetail) -> AttemptLogs | None:
    """The event and logs of the attempt that failed; None where none are stored."""
    return next((logs for logs in detail.logs if logs.attempt_id == detail.row.id), None)


def event_of(detail: FailureDetail) -> JobCompletion | None:
    """The stored event; None where retention removed it, or parts of it."""
    logs = logs_of_failed_attempt(detail)
    try:
        return None if logs is None or not logs.event else JobCompletion.model_validate(logs.event)
    except ValidationError:
        return None


def facts(verdict: VerdictFacts) -> tuple[Any, ...]:
    """What a verdict says apart from its confidence and its details."""
    return (
        verdict.side,
        verdict.cause,
        verdict.category,
        verdict.symptom,
        verdict.retry_outlook,
        verdict.abstained,
    )


def differs(before: VerdictFacts, now: VerdictFacts) -> bool:
    """Whether a new verdict says something else."""
    return facts(before) != facts(now) or abs(before.confidence - now.confidence) >= LEAST_CHANGE


def revised_wire(detail: FailureDetail, verdict: Verdict, event: JobCompletion, advice: Advice) -> dict[str, Any]:
    """The stored verdict/1 with the conclusions of a new verdict."""
    before, row = detail.verdict or {}, detail.row
    body = wire_of(
        verdict,
        advice,
        event_id=str(before.get("event_id") or event.key()),
        cluster=row.cluster,
        job_id=row.job_id,
        attempt=row.attempt,
    )
    return dict(before) | body
