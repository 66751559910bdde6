"""From an event to a request, a hook's answer, and the outcome of the resubmitted job."""

from datetime import timedelta

import pytest

from service.automation import incident_detection, leasing
from service.db.session import Store
from service.errors import Conflict, NotFound
from service.resubmissions.records import HookAnswer
from tests.service.automation.world import AUTO, World, job, world
from tests.service.frozen_clock import FrozenClock
from tests.service.web.world import NOW

XID = "NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus"


def test_a_faulty_node_is_excluded_and_the_job_is_resubmitted_at_once(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    assert (lease.job_id, lease.action, lease.exclude_nodes) == ("1", "requeue", ("gpu018",))
    assert lease.lease_count == 1
    assert here.lease() == []
    done = here.done(lease)
    assert done.state == "done"
    assert here.lease() == []
    assert [kind for kind, _ in here.messages()] == [
        "resubmission.requested",
        "failure.diagnosed",
        "resubmission.done",
    ]


def test_the_end_of_a_resubmitted_job_is_matched_to_its_request(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    here.done(lease)
    here.wait(hours=3)
    here.tell(job("1", at=here.clock.at, started_at=(NOW + timedelta(hours=1)).isoformat()))
    [request] = here.requests()
    assert (request.outcome, request.outcome_failure_id) == ("succeeded", None)
    assert here.messages("resubmission.succeeded")


def test_a_user_failure_is_never_resubmitted(here: World) -> None:
    here.tell(job("1", "ModuleNotFoundError: No module named 'flash_attn'"))
    assert here.failure("1").side == "user"
    assert here.requests() == []
    assert here.lease() == []


def test_an_undecided_failure_is_never_resubmitted(here: World) -> None:
    here.tell(job("1", "what is this"))
    assert here.failure("1").abstained
    assert here.requests() == []
    assert here.lease() == []


def test_waiting_requests_of_one_user_do_not_block_others(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leasing, "CANDIDATES", 4)
    text = AUTO + "[incident]\njobs = 1000\n[storm]\nmost = 1000\n[limits]\nrate_per_user = 2\n"
    here = world(store, clock, text)
    here.tell(*(job(str(number), XID, nodes=[f"gpu{number:03}"]) for number in range(1, 9)))
    here.wait(minutes=1)
    here.tell(job("9", XID, user="bob", nodes=["gpu009"]))
    assert len(here.lease()) == 2
    assert [one.job_id for one in here.lease()] == ["9"]


def test_a_fresh_installation_runs_in_shadow_mode(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, 'version = "fresh"')
    here.tell(job("1", XID))
    [request] = here.requests()
    assert (request.state, request.exclude_nodes) == ("shadow", ("gpu018",))
    assert here.lease() == []
    assert not here.messages("resubmission.requested")


def test_labels_opt_jobs_in_and_out(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, 'version = "fresh"\n[cost]\nenabled = false')
    here.tell(
        job("1", XID, labels={"faultline/resubmit": "auto"}),
        job("2", XID, labels={"faultline/resubmit": "never"}),
    )
    assert [request.job_id for request in here.requests("waiting")] == ["1"]
    assert here.requests("shadow") == []


def test_an_expired_request_is_never_leased(here: World) -> None:
    here.tell(job("1", XID))
    here.wait(hours=25)
    assert here.lease() == []
    here.automation.tick()
    assert [request.state for request in here.requests()] == ["expired"]
    assert here.messages("resubmission.suppressed")


def test_an_end_reported_days_late_requests_nothing(here: World) -> None:
    here.tell(job("1", XID, at=NOW - timedelta(days=2)))
    assert here.requests() == []


def test_an_expired_lease_returns_the_request_and_invalidates_its_token(here: World) -> None:
    here.tell(job("1", XID))
    [first] = here.lease(seconds=30)
    here.wait(seconds=31)
    [second] = here.lease(hook="another")
    assert (second.request_id, second.lease_count) == (first.request_id, 2)
    with pytest.raises(Conflict):
        here.done(first)
    assert here.done(second).state == "done"


def test_a_late_answer_counts_until_the_request_is_leased_again(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease(seconds=30)
    here.wait(seconds=600)
    assert here.done(lease).state == "done"


def test_a_repeated_answer_is_accepted_and_a_different_one_rejected(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    assert here.done(lease, new_job_id="9") == here.done(lease, new_job_id="9")
    with pytest.raises(Conflict, match="answered with done"):
        here.automation.ack(lease.request_id, lease.lease_token, HookAnswer("refused"))
    with pytest.raises(NotFound):
        here.automation.ack("rnothing", lease.lease_token, HookAnswer("done"))


def test_a_hook_that_cannot_act_retries_or_fails(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    assert here.automation.fail(lease.request_id, lease.lease_token, "scontrol: no answer", 120).state == "waiting"
    assert here.lease() == []
    here.wait(seconds=121)
    [again] = here.lease()
    failed = here.automation.fail(again.request_id, again.lease_token, "unknown job", None)
    assert (failed.state, failed.detail, failed.tries) == ("failed", "unknown job", 1)
    assert here.automation.fail(again.request_id, again.lease_token, "unknown job", None) == failed
    assert here.lease() == []
    assert here.messages("resubmission.failed")


def test_the_kill_switch_stops_all_processes_at_once(here: World, url: str, clock: FrozenClock) -> None:
    failure = here.tell(job("1", XID)).events[0].failure_id or 0
    elsewhere = world(Store(url, clock=clock), clock)
    elsewhere.automation.set_stopped(stopped=True, actor="ana", reason="storage work")
    assert here.lease() == []
    here.tell(job("2", XID))
    with here.store.reading() as reading:
        switch = reading.kill_switch.get()
    assert (switch.stopped, switch.by, switch.reason) == (True, "ana", "storage work")
    with pytest.raises(Conflict, match="stopped by ana"):
        here.automation.resubmit(failure, "bea")
    elsewhere.automation.set_stopped(stopped=False, actor="ana")
    elsewhere.store.close()
    assert [lease.job_id for lease in here.lease()] == ["1"]


def test_a_second_stop_without_a_reason_keeps_the_first(here: World, clock: FrozenClock) -> None:
    first = here.automation.set_stopped(stopped=True, actor="ana", reason="storage work")
    clock.sleep(60)
    assert here.automation.set_stopped(stopped=True, actor="bea") == first
    later = here.automation.set_stopped(stopped=True, actor="bea", reason="network work")
    assert (later.by, later.reason, later.at) == ("bea", "network work", clock.now())
    assert not here.automation.set_stopped(stopped=False, actor="bea").stopped
    assert here.automation.set_stopped(stopped=True, actor="bea").reason is None


def test_the_same_failure_again_without_progress_stops(here: World) -> None:
    at = NOW
    for turn in range(2):
        here.tell(job("1", "connection reset by peer", at=at))
        here.wait(minutes=30)
        leases = here.lease()
        assert len(leases) == (1 if turn == 0 else 0)
        if leases:
            here.done(leases[0])
        here.wait(hours=3)
        at = here.clock.at
    [request] = here.requests()
    assert request.outcome == "failed_same"
    [message] = here.messages("resubmission.failed")
    assert message[1]["why"] == "failed_same"


def test_manual_actions_override_the_policy(here: World) -> None:
    outcome = here.tell(job("1", XID), job("2", "ModuleNotFoundError: x"), job("3", XID))
    first, second, third = (one.failure_id or 0 for one in outcome.events)
    here.automation.hold(first, "ana", "I look at it")
    here.automation.never(third, "ana")
    assert here.lease() == []
    assert {(one.job_id, one.state, one.held_by) for one in here.requests()} == {
        ("1", "held", "person"),
        ("3", "withdrawn", None),
    }
    here.automation.resubmit(first, "bea")
    here.automation.resubmit(second, "bea", "the image has it now")
    leases = here.lease()
    assert sorted(lease.job_id for lease in leases) == ["1", "2"]
    with pytest.raises(Conflict, match="is processing it already"):
        here.automation.resubmit(first, "bea")
    for lease in leases:
        here.done(lease)
    with pytest.raises(Conflict, match="resubmitted already"):
        here.automation.resubmit(first, "bea")
    here.wait(hours=3)
    here.tell(job("3", XID, at=here.clock.at))
    assert here.lease() == []


def test_a_request_with_an_expired_lease_can_be_held(here: World) -> None:
    [one] = here.tell(job("1", XID)).events
    failure = one.failure_id or 0
    [lost] = here.lease(seconds=60)
    with pytest.raises(Conflict, match="is processing it already"):
        here.automation.hold(failure, "ana")
    here.wait(seconds=61)
    [held] = here.automation.hold(failure, "ana", "its hook is gone")
    assert (held.state, held.held_by) == ("held", "person")
    assert here.lease() == []
    here.automation.resubmit(failure, "ana")
    [again] = here.lease()
    assert (again.request_id, again.lease_count) == (lost.request_id, 2), "its holder looks first"
    with pytest.raises(Conflict):
        here.done(lost)
    assert here.done(again).state == "done"


def test_an_answer_for_a_job_held_meanwhile_counts(here: World) -> None:
    [one] = here.tell(job("1", XID)).events
    [late] = here.lease(seconds=60)
    here.wait(seconds=61)
    here.automation.hold(one.failure_id or 0, "ana")
    assert here.done(late, new_job_id="2").state == "done"
    assert here.lease() == []


def test_a_job_that_another_system_resubmitted_is_not_resubmitted_again(here: World) -> None:
    here.tell(job("1", "connection reset by peer"))
    assert len(here.requests("waiting")) == 1
    here.wait(hours=3)
    here.tell(job("1", at=here.clock.at, started_at=(NOW + timedelta(minutes=5)).isoformat()))
    assert here.lease() == []
    [request] = here.requests()
    assert (request.state, request.detail) == ("withdrawn", "the job ran again meanwhile")


def test_the_end_of_a_new_job_is_matched_even_before_the_answer(here: World) -> None:
    here.tell(job("1", XID))
    [lease] = here.lease()
    here.wait(hours=3)
    here.tell(job("77", at=here.clock.at))
    assert here.done(lease, new_job_id="77").outcome == "succeeded"


def test_a_chain_of_submissions_is_one_lineage(here: World) -> None:
    here.tell(job("1", XID))
    name = "1"
    for number in range(2, 8):
        leases = here.lease()
        if not leases:
            break
        here.done(leases[0], new_job_id=str(number))
        name = str(number)
        here.wait(hours=1)
        other = job(name, f"{XID} again {number}", at=here.clock.at, nodes=[f"gpu{number}", "gpu100"])
        here.tell(other)
        here.wait(hours=26)
    assert len({request.lineage for request in here.requests()}) == 1
    assert len([request for request in here.requests() if request.state == "done"]) <= 4


def test_a_repeated_batch_requests_once(here: World) -> None:
    here.tell(job("1", XID), job("2", XID))
    here.tell(job("1", XID), job("2", XID))
    assert len(here.requests()) == 2


def test_advice_is_stored_with_its_facts(here: World) -> None:
    outcome = here.tell(job("1", XID))
    with here.store.reading() as reading:
        [(version, _, policy, decision, mode, facts)] = reading.advice_history.of(outcome.events[0].failure_id or 0)
    assert (version, policy, decision, mode) == (1, "auto-1/builtin-2", "resubmit_now", "act")
    assert facts["opt_in"]["mode"] == "auto"


def test_a_failing_rule_does_not_lose_the_event(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ArithmeticError

    monkeypatch.setattr("service.automation.service.advise", broken)
    outcome = here.tell(job("1", XID), job("2"))
    assert [one.kind for one in outcome.events] == ["accepted", "accepted"]
    with here.store.reading() as reading:
        assert reading.failures.get(outcome.events[0].failure_id or 0).row.decision == "ask"


def test_a_request_names_the_policy_version(store: Store, clock: FrozenClock) -> None:
    here = world(store, clock, AUTO.replace("auto-1", "night-7"))
    here.tell(job("1", XID))
    assert here.requests()[0].policy.startswith("night-7/")


def test_an_error_over_one_incident_does_not_keep_requests_from_expiring(
    here: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here.tell(job("1", XID))
    here.automation.open_incident("orion", "file_system", "/scratch", "ada")

    def broken(*args: object) -> int:
        del args
        raise KeyError("odd")

    monkeypatch.setattr(incident_detection, "add_missed_failures", broken)
    here.wait(hours=200)
    here.automation.tick()
    assert [one.state for one in here.requests()] == ["expired"]
    assert "a step of the periodic work" in caplog.text
