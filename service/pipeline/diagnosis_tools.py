"""What the diagnosis of new events and the revision of stored verdicts both use: services, and the stored verdict."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from classifiers.contracts import Verdict
from service.automation.request_creation import AdvisedFailure
from service.automation.service import Automation
from service.clock import Clock
from service.contracts.event import JobCompletion
from service.contracts.verdict_wire import wire_of
from service.db.session import Store
from service.logs.fetch import LogReader
from service.pipeline.classification import Classifier
from service.recommend.advise import advise_without_history
from service.recommend.policy import Policy
from service.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class DiagnosisTools:
    """The services with which a failure becomes a stored verdict with advice.

    Attributes:
        store: the database.
        logs: fetches the logs of events.
        classifier: gives verdicts.
        policy: the policy of advice without history.
        clock: the current time.
        telemetry: the metrics.
        automation: gives advice with history and makes requests; None: advice without history only.
        log_deadline_s: seconds in which the logs of a batch are fetched; those that are missing then come later.
    """

    store: Store
    logs: LogReader
    classifier: Classifier
    policy: Policy
    clock: Clock
    telemetry: Telemetry
    automation: Automation | None = None
    log_deadline_s: float = 60.0


def advised_wire(
    event: JobCompletion,
    verdict: Verdict,
    advised: AdvisedFailure | None,
    *,
    event_id: str,
    policy: Policy,
    now: datetime,
) -> dict[str, Any]:
    """The verdict/1 of an event.

    Args:
        event: the event.
        verdict: the verdict on it.
        advised: its advice; None: the advice without history is made here.
        event_id: the id under which the event is known.
        policy: the policy of advice without history.
        now: the current time.
    """
    advice = advise_without_history(verdict, event, policy, now) if advised is None else advised.advice
    return wire_of(
        verdict, advice, event_id=event_id, cluster=event.cluster, job_id=event.job_id, attempt=event.attempt
    )
