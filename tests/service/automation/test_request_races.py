"""Requests that change at the same time: leases, marks, late answers, and many holds at once."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import event

from service.db.session import Store
from service.errors import Conflict
from service.resubmissions.repository.requests import RequestReader
from tests.service.automation.world import AUTO, World, job, world
from tests.service.databases import engine_of
from tests.service.frozen_clock import FrozenClock


@pytest.fixture
def here(store: Store, clock: FrozenClock) -> World:
    return world(store, clock)


def test_a_request_leased_during_a_resubmit_is_a_conflict(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    here.tell(job("1", "connection reset by peer"))
    here.wait(minutes=5)
    [one] = here.requests("waiting")
    with here.store.reading() as reading:
        stale = reading.requests.open_by_lineage([one.lineage])
    here.lease()
    monkeypatch.setattr(RequestReader, "open_by_lineage", lambda _self, _keys: stale)
    with pytest.raises(Conflict):
        here.automation.resubmit(one.failure_id, "ana")


def test_a_request_stored_while_a_person_excluded_its_lineage_is_withdrawn(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    [one] = here.requests("waiting")
    with here.store.unit_of_work() as work:
        work.lineages.mark(one.lineage, "never", actor="ana")
    here.wait(minutes=5)
    here.automation.tick()
    assert here.lease() == []


def test_a_request_stored_while_a_person_held_its_lineage_is_held(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    [one] = here.requests("waiting")
    with here.store.unit_of_work() as work:
        work.lineages.mark(one.lineage, "hold", actor="ana")
    here.wait(minutes=5)
    here.automation.tick()
    assert here.lease() == []
    assert [held.held_by for held in here.requests("held")] == ["person"]
    messages = here.messages()
    here.automation.tick()
    assert here.messages() == messages


TEXT = f"""{AUTO}
[limits]
same_failure = 50
infra_per_window = 1
infra_per_lineage = 50
rate_per_cluster = 10000
rate_per_user = 10000
window_hours = 10
total_hours = 1000
[storm]
most = 5000
at_least = 5000
[incident]
jobs = 5000
"""


def again(here: World, names: Sequence[str]) -> None:
    began = (here.clock.at - timedelta(minutes=1)).isoformat()
    here.tell(*(job(n, "connection reset by peer", at=here.clock.at, started_at=began) for n in names))


def go(here: World, names: Sequence[str]) -> None:
    here.tell(*(job(n, "connection reset by peer", at=here.clock.at) for n in names))
    here.wait(minutes=5)
    for lease in here.lease(1000):
        here.done(lease)


@pytest.mark.slow
def test_many_requests_in_their_window_do_not_keep_later_ones_from_release(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, TEXT)
    go(here, ["early"])
    here.wait(hours=6)
    many = [f"m{n}" for n in range(200)]
    go(here, many)
    here.wait(minutes=5)
    again(here, many)
    here.wait(minutes=5)
    again(here, ["early"])
    here.wait(hours=5)
    here.automation.tick()
    assert [o.job_id for o in here.requests("waiting")] == ["early"]


def test_a_late_answer_to_an_expired_request_matches_an_earlier_end(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    here.wait(minutes=5)
    [lease] = here.lease()
    here.wait(days=2)
    here.automation.tick()
    here.tell(job("2", at=here.clock.at, started_at=here.clock.at.isoformat()))
    with pytest.raises(Conflict):
        here.done(lease, new_job_id="2")
    assert here.requests()[0].outcome == "succeeded"


def test_a_tick_reads_the_resubmits_of_all_requests_in_their_window_at_once(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, TEXT)

    def statements(count: int) -> int:
        many = [f"m{count}-{n}" for n in range(count)]
        go(here, many)
        here.wait(minutes=5)
        again(here, many)
        here.wait(minutes=5)
        seen: list[str] = []
        engine = engine_of(store)
        listener = lambda *given: seen.append(given[2])  # noqa: E731 - removed by its identity
        event.listen(engine, "before_cursor_execute", listener)
        here.automation.tick()
        event.remove(engine, "before_cursor_execute", listener)
        assert len(here.requests("held")) >= count
        return len(seen)

    assert statements(2) >= statements(40)
