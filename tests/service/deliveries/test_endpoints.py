from dataclasses import replace
from datetime import timedelta

from service.db.session import Store
from service.deliveries.records import EndpointState
from service.deliveries.repository.endpoints import paused
from tests.service.frozen_clock import FrozenClock


def test_a_circuit_is_kept_for_the_target_it_was_of(store: Store, clock: FrozenClock) -> None:
    until = clock.at + timedelta(seconds=30)
    with store.unit_of_work() as work:
        state = work.endpoints.lock("e", "here")
        assert state == EndpointState("e", "here")
        work.endpoints.put(replace(state, failures=5, paused_until=until, detail="x" * 999))
    with store.unit_of_work() as work:
        kept = work.endpoints.lock("e", "here")
        assert (kept.failures, kept.paused_until, kept.detail) == (5, until, "x" * 300)
        assert work.endpoints.lock("e", "there") == EndpointState("e", "there")


def test_an_enabled_endpoint_is_tried_at_once(store: Store, clock: FrozenClock) -> None:
    with store.unit_of_work() as work:
        state = work.endpoints.lock("e", "here")
        work.endpoints.put(replace(state, disabled_at=clock.at))
        assert paused(work.endpoints.all()["e"], clock.at)
        work.endpoints.enable("e")
        assert not paused(work.endpoints.all()["e"], clock.at)


def test_a_pause_ends(clock: FrozenClock) -> None:
    until = clock.at + timedelta(seconds=1)
    assert paused(EndpointState("e", "t", paused_until=until), clock.at)
    assert not paused(EndpointState("e", "t", paused_until=until), until)
    assert not paused(None, until)
