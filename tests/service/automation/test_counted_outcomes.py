"""What requests brought is counted also where a hook never answered."""

from datetime import timedelta

import pytest

from service.db.session import Store
from tests.service.automation.world import World, job, world
from tests.service.frozen_clock import FrozenClock


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)


@pytest.mark.parametrize("line", [None, "connection reset by peer"])
def test_a_job_that_ended_before_its_hook_answered_counts_in_the_funnel(here: World, line: str | None) -> None:
    here.tell(job("1", "connection reset by peer"))
    here.wait(minutes=5)
    [lease] = here.lease()
    here.wait(hours=2)
    began = here.clock.at - timedelta(hours=1)
    here.tell(
        job("1", line, at=here.clock.at, started_at=began.isoformat(), labels={"faultline/request": lease.request_id})
    )
    here.wait(minutes=5)
    with here.store.reading() as reading:
        found = reading.funnel.read(here.clock.at - timedelta(days=1))
        [rate] = reading.outcomes.tallies()
        span = reading.decision_history.span()
        assert span is not None
        decided = next(iter(reading.decision_history.read(*span)))
    assert (rate.helped, rate.failed) == ((1, 0) if line is None else (0, 1))
    assert (found.requested, found.done) == (1, 1)
    assert (found.succeeded, found.failed) == (rate.helped, rate.failed)
    assert (found.wasted > 0) is (line is not None)
    assert (decided.made, decided.outcome) == (True, "succeeded" if line is None else "failed_same")
