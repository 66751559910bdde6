"""What the diagnosis of new events and the revision of stored verdicts both use."""

from dataclasses import dataclass

from service.automation.service import Automation
from service.clock import Clock
from service.db.session import Store
from service.good_runs.collection import Logs
from service.pipeline.classification import Classifier
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
    logs: Logs
    classifier: Classifier
    policy: Policy
    clock: Clock
    telemetry: Telemetry
    automation: Automation | None = None
    log_deadline_s: float = 60.0
