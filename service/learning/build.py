"""Builds the periodic tasks of learning: shadow runs, drift monitoring, and scheduled retraining."""

from collections.abc import Callable
from typing import Final

from service.clock import Clock
from service.db.session import Store
from service.drift.watch import DriftWatch
from service.learning.records import RetrainSchedule
from service.learning.retraining import Retraining
from service.learning.scheduled_retraining import ScheduledRetraining
from service.learning.shadow_run import ShadowRun, ShadowWatch
from service.periodic import PeriodicTask
from service.signatures.reloading_diagnoser import ReloadingDiagnoser
from service.telemetry import Telemetry

EVERY_S: Final = 60.0


def tasks(
    store: Store,
    clock: Clock,
    telemetry: Telemetry,
    diagnoser: ReloadingDiagnoser,
    shadow_run: ShadowRun,
    retraining: Callable[[], Retraining],
    schedule: RetrainSchedule,
) -> list[PeriodicTask]:
    """The tasks, not started yet."""
    found = [
        PeriodicTask(ShadowWatch(store, clock, diagnoser, shadow_run), EVERY_S, name="shadow run"),
        PeriodicTask(DriftWatch(store, clock, telemetry), EVERY_S, name="drift watch"),
    ]
    if schedule.is_set:
        due = ScheduledRetraining(store, clock, retraining, schedule, lambda: diagnoser.packaged.id)
        found.append(PeriodicTask(due, EVERY_S, name="scheduled retraining"))
    return found
