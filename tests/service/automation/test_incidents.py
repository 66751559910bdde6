"""Incidents: many failures over one shared resource are held, tested with a probe, and released at a pace."""

from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest

from service.automation.incident_detection import add_missed_failures
from service.db.session import Store
from service.errors import Conflict
from service.incidents.records import Incident
from service.resubmissions.records import HookAnswer
from tests.service.automation.world import World, job, outage, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW


def test_thirty_jobs_of_an_outage_form_one_incident_with_a_probe_and_a_paced_release(here: World) -> None:
    for start in range(0, 30, 6):
        here.tell(*outage(start, 6))
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    assert (incident.kind, incident.value, incident.jobs, incident.users) == ("file_system", "/scratch", 30, 11)
    assert len(here.requests("held")) == 30
    assert here.lease() == []
    [opened] = here.messages("incident.opened")
    assert opened[1]["incident"]["title"] == "Jobs fail on file system /scratch"

    here.wait(minutes=11)
    [probe] = here.lease()
    assert probe.job_id == "0"  # the least costly to try
    assert here.lease() == []
    here.done(probe)
    here.wait(minutes=5)
    assert here.lease() == []

    here.tell(job("0", at=here.clock.at, started_at=(here.clock.at - timedelta(minutes=4)).isoformat()))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []
        ended = reading.incidents.get(incident.id).notes[-1].text
    assert ended.startswith("probe job 0 succeeded; "), ended
    assert here.messages("incident.closed")
    let_go: list[str] = []
    for _ in range(12):
        given = here.lease()
        assert len(given) <= 8  # six a minute, give or take the jitter
        let_go += [lease.job_id for lease in given]
        for lease in given:
            here.done(lease)
        here.wait(minutes=1)
    assert sorted(let_go, key=int) == [str(n) for n in range(1, 30)]


def test_after_a_failed_probe_all_jobs_stay_held_until_the_next_probe(here: World) -> None:
    here.tell(*outage(0, 8))
    here.wait(minutes=11)
    [probe] = here.lease()
    here.done(probe)
    here.wait(minutes=2)
    [again] = outage(int(probe.job_id), 1, at=here.clock.at)
    again["started_at"] = (here.clock.at - timedelta(minutes=1)).isoformat()
    here.tell(again)
    assert here.lease() == []
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
        notes = [note.what for note in reading.incidents.get(incident.id).notes]
    assert (incident.state, incident.probes) == ("holding", 1)
    assert notes == ["opened", "probe", "probe failed"]
    here.wait(minutes=11)
    [other] = here.lease()
    assert other.job_id != probe.job_id


def test_a_long_running_probe_closes_the_incident(here: World) -> None:
    here.tell(*outage(0, 8))
    here.wait(minutes=11)
    here.done(here.lease()[0])
    here.wait(minutes=20)
    here.automation.tick()
    assert here.lease() == []
    here.wait(minutes=11)
    here.automation.tick()
    assert len(here.messages("incident.closed")) == 1
    here.wait(minutes=10)
    assert len(here.lease()) == 7


def test_a_running_probe_does_not_close_the_incident_while_others_fail(here: World) -> None:
    here.tell(*outage(0, 8))
    here.wait(minutes=11)
    [probe] = here.lease()
    here.done(probe)
    here.wait(minutes=5)
    here.tell(*outage(20, 2, at=here.clock.at))
    here.wait(minutes=30)
    here.automation.tick()
    assert here.messages("incident.closed") == []
    assert [lease.job_id for lease in here.lease()] != [probe.job_id]


@pytest.mark.parametrize("result", ["refused", "unknown"])
def test_a_probe_without_a_job_is_replaced(here: World, result: Any) -> None:
    here.tell(*outage(0, 8))
    here.wait(minutes=11)
    [probe] = here.lease()
    here.automation.ack(probe.request_id, probe.lease_token, HookAnswer(result))
    here.automation.tick()
    here.wait(seconds=1)
    [other] = here.lease()
    assert other.job_id != probe.job_id


def test_a_probe_with_an_expired_lease_is_leased_again(here: World) -> None:
    here.tell(*outage(0, 8))
    here.wait(minutes=11)
    [probe] = here.lease(seconds=30)
    here.wait(seconds=31)
    [again] = here.lease()
    assert (again.request_id, again.lease_count) == (probe.request_id, 2)
    assert here.lease() == []


def test_few_jobs_or_jobs_of_one_user_form_no_incident(here: World) -> None:
    here.tell(*outage(0, 4))
    here.tell(*(one | {"user": "ana", "cluster": "vega"} for one in outage(100, 8)))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []


def test_repeated_failures_of_few_lineages_form_no_incident(here: World) -> None:
    resubmitted = outage(0, 9)
    for one in resubmitted[1:]:
        one |= {"resubmit_of": "0", "user": "user0"}
    here.tell(*resubmitted, *outage(10, 2))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []  # eleven failures of three users, but three pieces of work
    here.tell(*outage(20, 3))
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    assert incident.jobs == 14


def test_failures_far_apart_form_no_incident(here: World) -> None:
    for n in range(8):
        here.tell(*outage(n, 1, at=NOW - timedelta(hours=5, minutes=-30 * n)))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []


def test_failures_reported_late_open_no_incident(here: World) -> None:
    here.tell(*outage(0, 12, at=NOW - timedelta(days=3)))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []


def test_preempted_jobs_and_user_failures_form_no_incident(here: World) -> None:
    here.tell(*(one | {"status": "preempted"} for one in outage(0, 12)))
    here.tell(*outage(20, 12, line="ModuleNotFoundError: No module named 'x' {user} {n}"))
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []


def test_an_incident_of_a_node_does_not_hold_jobs_that_exclude_it(here: World) -> None:
    line = "NVRM: Xid 79, fallen off the bus {user} {n}"
    here.tell(*(one | {"nodes": ["gpu018", f"gpu{i}"]} for i, one in enumerate(outage(0, 8, line=line))))
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    # The logs name no node of these jobs (each names its first), which is gpu018 after all: it is left out.
    assert incident.kind in {"node", "fingerprint"}


def test_a_person_can_hold_release_and_close_an_incident(here: World) -> None:
    here.tell(*outage(0, 8))
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    held = here.automation.hold_incident(incident.id, "ana", "storage team is on it")
    assert held.by_hand
    here.wait(minutes=60)
    here.automation.tick()
    assert here.lease() == []
    here.automation.release_incident(incident.id, "ana")
    [probe] = here.lease()
    here.done(probe)
    closed = here.automation.close_incident(incident.id, "ana", "failed over")
    assert (closed.state, closed.closed_by) == ("closed", "ana")
    with pytest.raises(Conflict):
        here.automation.close_incident(incident.id, "bea")
    here.wait(minutes=10)
    assert len(here.lease()) == 7
    with here.store.reading() as reading:
        notes = reading.incidents.get(incident.id).notes
    assert [(note.by, note.what) for note in notes] == [
        ("policy", "opened"),
        ("ana", "held"),
        ("ana", "released"),
        ("policy", "probe"),
        ("ana", "closed"),
    ]


def test_a_manually_opened_incident_holds_new_failures(here: World) -> None:
    opened = here.automation.open_incident("orion", "file_system", "/scratch", "ana", "maintenance begins")
    with pytest.raises(Conflict, match=f"incident {opened.id} is open"):
        here.automation.open_incident("orion", "file_system", "/scratch", "bea")
    here.tell(*outage(0, 2))
    assert {request.incident_id for request in here.requests("held")} == {opened.id}
    here.wait(hours=1)
    assert here.lease() == []


def test_requests_that_wait_when_an_incident_opens_are_held(here: World) -> None:
    here.tell(*outage(0, 2))
    assert len(here.requests("waiting")) == 2
    here.wait(minutes=5)
    here.automation.open_incident("orion", "file_system", "/scratch", "ana")
    assert here.lease() == []
    assert len(here.requests("held")) == 2


def closed_by_another_process(here: World) -> Incident:
    """An incident as it was read before another process closed it; its ten requests are released."""
    here.tell(*outage(0, 10))
    with here.store.reading() as reading:
        [before] = reading.incidents.opened()
    here.automation.close_incident(before.id, "ana")
    assert here.requests("held") == []
    return before


def test_an_incident_that_another_process_has_closed_holds_nothing_any_more(here: World) -> None:
    before = closed_by_another_process(here)
    with here.store.unit_of_work() as work:
        assert add_missed_failures(work, before, before.opened_at - timedelta(minutes=15)) == 0
    assert here.requests("held") == []


def test_what_was_held_for_an_incident_while_it_was_being_closed_is_released(here: World) -> None:
    before = closed_by_another_process(here)
    waiting = [one.request_id for one in here.requests("waiting")]
    with here.store.unit_of_work() as work:
        work.requests.hold(waiting, "incident", incident_id=before.id)
    assert len(here.requests("held")) == len(waiting) == 10
    here.automation.tick()
    assert here.requests("held") == []


def test_jobs_held_for_a_repair_are_released_with_their_incident(here: World) -> None:
    here.tell(*outage(0, 4, line="controller misconfigured {user} {n}"))
    assert {(one.state, one.held_by) for one in here.requests()} == {("held", "repair")}
    here.tell(*outage(4, 2, line="controller misconfigured {user} {n}"))
    assert {(one.state, one.held_by) for one in here.requests()} == {("held", "incident")}
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    here.automation.close_incident(incident.id, "ana")
    here.wait(minutes=10)
    assert len(here.lease()) == 6


def test_a_fresh_installation_opens_incidents_without_requests(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, 'version = "fresh"')
    here.tell(*outage(0, 30))
    with here.store.reading() as reading:
        assert len(reading.incidents.opened()) == 1
    assert not here.requests("held")
    here.wait(hours=3)
    here.automation.tick()
    with here.store.reading() as reading:
        assert reading.incidents.opened() == []  # nothing held, nothing new: over


def test_concurrent_processes_open_an_incident_once(here: World, url: str, clock: FrozenClock) -> None:
    workers = [world(Store(url, clock=clock), clock) for _ in range(4)]
    ready = Barrier(len(workers))

    def tell(number: int) -> None:
        ready.wait()
        for n in range(3):
            workers[number].tell(*outage(100 * number + 10 * n, 3))

    threads = [Thread(target=tell, args=(number,)) for number in range(len(workers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for worker in workers:
        worker.store.close()
    here.automation.tick()  # what was stored at the very moment of the opening is gathered in
    with here.store.reading() as reading:
        [incident] = reading.incidents.opened()
    assert incident.jobs == 36
    assert len(here.messages("incident.opened")) == 1
    assert len(here.requests("held")) == 36


def test_one_job_that_fails_four_times_is_one_job_of_an_incident(here: World) -> None:
    here.tell(*outage(0, 8))
    for minutes in range(1, 4):
        [again] = outage(0, 1, at=here.clock.at + timedelta(minutes=minutes))
        again["started_at"] = (here.clock.at + timedelta(minutes=minutes - 1)).isoformat()
        here.tell(again)
    [other] = outage(50, 1, at=here.clock.at + timedelta(minutes=5))
    here.tell({**other, "resubmit_of": "1", "user": "user1"})
    with here.store.reading() as reading:
        [opened] = reading.incidents.opened()
        found = reading.incidents.get(opened.id)
    assert (found.counts.attempts, found.counts.jobs, found.counts.lineages) == (12, 9, 8)
    assert opened.jobs == found.incident.jobs == 9
    assert len(found.jobs) == 12
