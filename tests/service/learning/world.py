"""A service with a small real model: events come in as JSON, people label, and layers are fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from classifiers import signatures
from classifiers.data.labelled_cases import LabelledCase
from classifiers.model.site.layer import SiteLayer
from service.contracts.event import from_object
from service.db.session import Store
from service.failures.records import FailureRow
from service.feedback.records import FeedbackInput, FeedbackKind, Labels
from service.feedback.service import Feedback
from service.learning.active_layer import ActiveLayer
from service.learning.retraining import Candidate, Retraining
from service.learning.shadow_run import ShadowRun, ShadowWatch
from service.logs.fetch import LogFetcher
from service.pipeline.diagnosis_tools import DiagnosisTools
from service.recommend import policy
from service.recommend.advise import Advisor
from service.signatures.reloading_diagnoser import ReloadingDiagnoser
from service.signatures.signature_folder import SignatureFolder
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with

SECONDS_TO_LOAD = 10.0


@dataclass
class World:
    """One process of the service; several share a database."""

    store: Store
    clock: FrozenClock
    model: Path
    benchmark: Sequence[LabelledCase] = ()
    sent: int = 0
    key: bytes | None = None

    def __post_init__(self) -> None:
        folder = SignatureFolder(None, self.clock)
        self.diagnoser = ReloadingDiagnoser(
            self.model, folder, layer=ActiveLayer(self.store, self.clock, self.key).current
        )
        rules = policy.built_in()
        self.diagnose = diagnose_with(
            DiagnosisTools(self.store, LogFetcher(()), self.diagnoser, rules, self.clock, Telemetry())
        )
        self.feedback = Feedback(self.store, self.clock, Advisor(rules, self.clock), zone=ZoneInfo("UTC"))
        self.shadow_run = ShadowRun(self.store, Advisor(rules, self.clock))
        self.retraining = Retraining(
            self.store, self.clock, self.diagnoser.packaged, signatures.packaged(), self.key, shadow=self.shadow_run
        )
        self.shadow_watch = ShadowWatch(self.store, self.clock, self.diagnoser, self.shadow_run)

    def active_layer(self) -> SiteLayer | None:
        """The layer that gives verdicts now, None for the packaged model alone."""
        with self.store.reading() as reading:
            return self.retraining.promotions.in_use(reading)

    def fails(self, line: str, *, name: str = "job") -> FailureRow:
        """A job fails with this line; returns its failure."""
        self.sent += 1
        event = from_object(
            {
                "cluster": "orion",
                "job_id": f"{name}-{self.sent}",
                "status": "failed",
                "ended_at": (self.clock.now() - timedelta(minutes=1)).isoformat(),
                "gpus": 1,
                "logs": [{"rank": 0, "stream": "stderr", "tail": f"step 10 loss 2.1\n{line}\n"}],
            }
        )
        [outcome] = self.diagnose([event]).events
        assert outcome.failure_id is not None
        with self.store.reading() as reading:
            return reading.failures.get(outcome.failure_id).row

    def label(
        self, row: FailureRow, side: str, cause: str, *, who: str = "ana", kind: FeedbackKind = "correct", **more: Any
    ) -> Any:
        """A person labels one failure."""
        return self.feedback.add(row.id, who, FeedbackInput(kind, Labels(side, cause, **more)))

    def retrain(self, who: str = "ana") -> Candidate:
        """Retrain on the stored labels."""
        return self.retraining.retrain(who, benchmark=self.benchmark)

    def waits(self) -> None:
        """The time passes within which all processes load what was promoted."""
        self.clock.sleep(SECONDS_TO_LOAD)
