"""What requests brought is counted also where a hook never answered."""

from datetime import timedelta

import pytest

from service.contracts.advice import AckResult
from service.db.session import Store
from service.resubmissions.records import HookAnswer
from tests.service.automation.world import AUTO, World, job, world
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


def saved(here: World) -> dict[str, object]:
    """A checkpoint an hour after the start of a job that ended a minute ago."""
    return {"uri": "/scratch/step9.pt", "step": 9, "at": (here.clock.at - timedelta(minutes=61)).isoformat()}


@pytest.mark.parametrize(("result", "rescued"), [("done", 8.0), ("already_done", 0.0)])
def test_a_job_that_its_scheduler_started_again_is_not_counted_as_resubmitted(
    here: World, result: AckResult, rescued: float
) -> None:
    here.tell(job("1", "NVRM: Xid 79", checkpoint=saved(here)))
    here.wait(minutes=5)
    [lease] = here.lease()
    here.automation.ack(lease.request_id, lease.lease_token, HookAnswer(result))
    here.wait(hours=3)
    here.tell(job("1", at=here.clock.at))
    here.wait(minutes=5)
    since, until = here.clock.at - timedelta(days=1), here.clock.at
    with here.store.reading() as reading:
        found = reading.funnel.read(since)
        week = reading.weekly_action_counts.automated(since, until)
        span = reading.decision_history.span()
        assert span is not None
        decided = next(iter(reading.decision_history.read(*span)))
        started = reading.outcomes.tallies(since, started_by_hooks=True)
        [rate] = reading.outcomes.tallies(since)
    counted = int(result == "done")
    assert (rate.helped, sum(one.helped for one in started)) == (1, counted), "it is evidence of what helps anyway"
    assert (found.requested, found.done, found.succeeded, found.elsewhere) == (1, counted, counted, 1 - counted)
    assert week.by_state == {result: 1}
    assert week.by_outcome == ({"succeeded": 1} if counted else {})
    for hours in (found.rescued, week.rescued, decided.rescued):
        assert hours == pytest.approx(rescued, abs=0.01)


def test_shadow_mode_would_not_have_rescued_a_job_that_was_started_again_anyway(
    store: Store, clock: FrozenClock
) -> None:
    here = world(store, clock, AUTO.replace('default = "auto"', 'default = "shadow"'))
    saved_at = saved(here)
    here.tell(job("1", "NVRM: Xid 79", checkpoint=saved_at), job("2", "NVRM: Xid 79", user="bo", checkpoint=saved_at))
    here.wait(hours=3)
    here.tell(job("1", at=here.clock.at, started_at=(here.clock.at - timedelta(hours=2)).isoformat()))
    here.wait(days=9)
    reused = here.clock.at - timedelta(hours=1)
    here.tell(job("2", user="bo", at=here.clock.at, started_at=reused.isoformat()))
    with here.store.reading() as reading:
        found = reading.funnel.read(here.clock.at - timedelta(days=28))
    [row] = found.shadow
    assert (row.requests, found.shadow_elsewhere) == (1, 1), "a job long after the request is another one"
    assert row.rescuable == pytest.approx(8.0)
