"""Failures of five weeks whose input changes in the last one."""

from datetime import timedelta

from classifiers.contracts import InputMeasures
from service.db.session import Store
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put

OLD = InputMeasures(0.05, 10, 1, ("NCCL 2.20.5", "Python 3.11"))
NEW = InputMeasures(0.55, 10, 9, ("NCCL 2.22.3", "Python 3.11"))


def stored(store: Store, clock: FrozenClock) -> list[int]:
    """Forty failures of four weeks, and forty of the last week whose words are new; the ids of the recent ones."""
    clock.at = NOON
    ids = []
    for start, measures in ((timedelta(days=20), OLD), (timedelta(days=2), NEW)):
        for number in range(40):
            ended = NOON - start - timedelta(hours=number)
            [outcome] = put(store, [job(f"{start.days}-{number}", ended_at=ended)], fingerprint=f"1:{number % 20}")
            assert outcome.failure_id is not None
            ids.append(outcome.failure_id)
            with store.unit_of_work() as work:
                work.drift.add({outcome.failure_id: measures})
    return ids[40:]
