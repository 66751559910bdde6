"""Requests that wait for a person, an incident or a storm are not lost, left waiting for ever or carried out twice."""

from datetime import timedelta

import pytest

from service.db.session import Store
from service.resubmissions.records import Lease
from tests.service.automation.world import AUTO, STORM, World, job, outage, world
from tests.service.frozen_clock import FrozenClock


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)


def test_a_waiting_request_that_a_person_holds_is_kept_over_a_weekend(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    [request] = here.requests("waiting")
    here.automation.hold(request.failure_id, "ana")
    here.wait(days=3)
    here.automation.tick()
    here.automation.lift(request.failure_id, "ana")
    assert [one.job_id for one in here.lease()] == ["1"]


def test_requests_that_waited_when_their_incident_opened_are_held_as_long_as_the_others(here: World) -> None:
    for number in range(10):
        here.tell(*outage(number, 1))
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    here.automation.hold_incident(incident.id, "ana")
    here.wait(days=2)
    here.automation.tick()
    assert len(here.requests("held")) == 10


def in_a_storm(store: Store, clock: FrozenClock) -> World:
    """Three jobs were resubmitted, three are held by a storm."""
    here = world(store, clock, STORM)
    here.tell(*outage(0, 6))
    here.wait(minutes=5)
    for lease in here.lease():
        here.done(lease)
    here.lease()
    assert len(here.requests("held")) == 3
    return here


def test_requests_that_waited_when_a_storm_was_held_stay_valid(store: Store, clock: FrozenClock) -> None:
    here = in_a_storm(store, clock)
    here.wait(hours=30)
    here.automation.tick()
    assert len(here.requests("held")) == 3


def test_a_trial_whose_job_runs_for_days_ends_the_storm(store: Store, clock: FrozenClock) -> None:
    here = in_a_storm(store, clock)
    here.wait(minutes=31)
    [trial] = here.lease()
    here.done(trial)
    here.wait(minutes=5)
    here.automation.tick()
    assert len(here.requests("held")) == 2
    here.wait(hours=3)
    here.automation.tick()
    here.wait(minutes=5)
    assert len(here.lease()) == 2


def test_a_trial_whose_job_runs_on_does_not_end_the_storm_while_others_fail(store: Store, clock: FrozenClock) -> None:
    here = in_a_storm(store, clock)
    here.wait(minutes=31)
    [trial] = here.lease()
    here.done(trial)
    here.wait(minutes=20)
    here.tell(*outage(6, 1, at=here.clock.at))
    here.wait(minutes=15)
    here.automation.tick()
    assert here.lease() == []
    assert len(here.requests("held")) == 3
    here.wait(minutes=31)
    assert len(here.lease()) == 1


def test_a_scheduler_that_is_away_for_an_hour_does_not_end_a_request(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    for _ in range(90):
        here.wait(seconds=40)
        for lease in here.lease():
            here.automation.fail(lease.request_id, lease.lease_token, "slurmctld: no answer", 30)
    here.wait(hours=1)
    [lease] = here.lease()
    assert here.done(lease).state == "done"


def test_the_trial_of_a_storm_that_a_person_holds_is_replaced(store: Store, clock: FrozenClock) -> None:
    here = in_a_storm(store, clock)
    here.wait(minutes=31)
    [trial] = here.lease()
    here.automation.fail(trial.request_id, trial.lease_token, "away", 30)
    here.automation.hold(trial.failure_id, "ana")
    here.automation.tick()
    [other] = here.lease()
    assert other.request_id != trial.request_id


def test_the_probe_of_an_incident_that_a_person_holds_is_replaced(here: World) -> None:
    here.tell(*outage(0, 10))
    here.wait(minutes=31)
    [probe] = here.lease()
    here.automation.fail(probe.request_id, probe.lease_token, "away", 30)
    here.automation.hold(probe.failure_id, "ana")
    here.automation.tick()
    here.wait(minutes=31)
    [other] = here.lease()
    assert other.request_id != probe.request_id


def quick_failure(here: World) -> tuple[int, Lease]:
    """A resubmitted job without labels that fails before its hook answers; returns its failure, and the lease."""
    here.tell(job("1", "connection reset by peer"))
    here.wait(minutes=5)
    [lease] = here.lease()
    here.tell(job("2", "connection reset by peer", at=here.clock.at, started_at=here.clock.at.isoformat()))
    return here.failure("2").id, lease


def test_excluding_a_job_that_failed_before_its_hook_answered_withdraws_its_request(here: World) -> None:
    number, lease = quick_failure(here)
    here.done(lease, new_job_id="2")
    here.automation.never(number, "ana")
    here.wait(hours=1)
    assert here.lease() == []


def test_a_job_that_failed_before_its_hook_answered_is_resubmitted_once(here: World) -> None:
    number, lease = quick_failure(here)
    here.done(lease, new_job_id="2")
    here.automation.resubmit(number, "ana")
    here.wait(hours=1)
    assert len(here.lease()) == 1


def test_a_job_that_was_excluded_before_its_hook_answered_stays_excluded(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, AUTO + "[limits]\nsame_failure = 50\n")
    number, lease = quick_failure(here)
    here.automation.never(number, "ana")
    here.done(lease, new_job_id="2")
    here.wait(minutes=30)
    began = (here.clock.at - timedelta(minutes=20)).isoformat()
    here.tell(job("2", "connection reset by peer", at=here.clock.at, started_at=began))
    here.wait(hours=1)
    assert here.lease() == []
