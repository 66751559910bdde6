"""Retry storms: too many resubmits of one cause on one resource are held, and one trial decides about the others."""

from datetime import timedelta

from service.db.session import Store
from tests.service.automation.world import AUTO, STORM, World, job, outage, world
from tests.service.frozen_clock import FrozenClock


def after_three_resubmits(store: Store, clock: FrozenClock, *, of: int) -> World:
    """A site whose limit is reached by the first three of so many jobs of one outage."""
    here = world(store, clock, STORM)
    here.tell(*outage(0, of))
    here.wait(minutes=5)
    for lease in here.lease():
        here.done(lease)
    return here


def test_a_storm_is_held_and_tested_with_one_trial(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, STORM)
    here.tell(*outage(0, 10))
    here.wait(minutes=5)
    given = here.lease()
    assert len(given) == 3
    for lease in given:
        here.done(lease)
    assert here.lease() == []
    assert {one.held_by for one in here.requests("held")} == {"storm"}
    with here.store.reading() as reading:
        [held] = reading.storms.held().values()
    assert held.reason == "3 resubmits in 60 minutes"
    here.wait(minutes=31)
    [trial] = here.lease()
    assert here.lease() == []
    here.done(trial)
    here.tell(job(trial.job_id, at=here.clock.at, started_at=(here.clock.at - timedelta(minutes=1)).isoformat()))
    with here.store.reading() as reading:
        assert reading.storms.held() == {}
    here.wait(minutes=60)
    assert here.lease()


def test_failures_that_come_during_a_storm_are_held_and_tested_with_one_trial(store: Store, clock: FrozenClock) -> None:
    here = after_three_resubmits(store, clock, of=3)
    here.tell(*outage(3, 4, at=here.clock.at))
    assert {(one.state, one.held_by) for one in here.requests()} == {("done", None), ("held", "storm")}
    with store.reading() as reading:
        [storm] = reading.storms.held().values()
    assert storm.reason == "3 resubmits in 60 minutes"
    here.wait(minutes=31)
    assert len(here.lease()) == 1
    assert here.lease() == []


def test_what_was_held_for_a_storm_while_it_was_being_cleared_is_released(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, AUTO + "[incident]\njobs = 50\n")
    here.tell(*outage(0, 3))
    with store.unit_of_work() as work:
        work.requests.hold([one.request_id for one in here.requests("waiting")], "storm")
    here.automation.tick()
    here.wait(minutes=5)
    assert len(here.lease()) == 3


def test_a_trial_whose_job_a_person_excludes_is_replaced(store: Store, clock: FrozenClock) -> None:
    here = after_three_resubmits(store, clock, of=10)
    here.lease()
    here.wait(minutes=31)
    [trial] = here.lease()
    [excluded] = [one for one in here.requests() if one.request_id == trial.request_id]
    here.automation.never(excluded.failure_id, "ana")
    here.automation.tick()
    [other] = here.lease()
    assert other.request_id != trial.request_id


def test_a_failed_trial_keeps_the_storm_held(store: Store, clock: FrozenClock) -> None:
    here = after_three_resubmits(store, clock, of=10)
    here.lease()
    here.wait(minutes=31)
    [trial] = here.lease()
    here.done(trial)
    [again] = outage(int(trial.job_id), 1, at=here.clock.at)
    here.tell(again | {"started_at": (here.clock.at - timedelta(minutes=1)).isoformat()})
    assert here.lease() == []
    here.wait(minutes=20)
    assert here.lease() == []
    here.wait(minutes=11)
    assert len(here.lease()) == 1
