"""Fleet evidence in verdicts: known when a job ends, and reported later by nodes and related failures."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from classifiers.contracts import Evidence, RawCase, Verdict
from classifiers.fleet_evidence.records import FleetEvidence
from classifiers.fleet_evidence.verdict_update import update_verdict
from service.contracts.event import JobCompletion, from_object
from service.contracts.verdict import stored_verdict
from service.db.session import Store
from service.errors import Unavailable
from service.failures.records import FailureDetail
from service.formats import node_events
from service.logs.fetch import LogFetcher
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import FleetSettings, NodeReport
from service.nodes.statistics_updater import REASSESSED_AFTER, NodeStatisticsUpdater
from service.pipeline import reassessment, revision
from service.pipeline.diagnosis_tools import DiagnosisTools, advised_wire
from service.recommend import policy
from service.telemetry import Telemetry
from tests.service.frozen_clock import FrozenClock
from tests.service.pipeline.diagnosis import diagnose_with, revision_with
from tests.service.sample_rows import NOON
from tests.service.web.world import GUESS, OPEN

SETTINGS = FleetSettings()
XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=12, GPU has fallen off the bus."
SURE = replace(GUESS, evidence=(Evidence("ModuleNotFoundError: No module named 'x'", "initiating", rank=0),))


class Says:
    """A classifier with a fixed verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def diagnose(self, cases: Sequence[RawCase]) -> list[Verdict]:
        return [self.verdict for _ in cases]


class Bench:
    def __init__(self, store: Store, clock: FrozenClock, verdict: Verdict = OPEN) -> None:
        self.store = store
        self.clock = clock
        tools = DiagnosisTools(store, LogFetcher(()), Says(verdict), policy.built_in(), clock, Telemetry())
        self.diagnose, self.revision = diagnose_with(tools), revision_with(tools)
        self.tending = NodeStatisticsUpdater(store, clock, SETTINGS)

    def say(self, **changes: Any) -> None:
        plain = {"cluster": "orion", "node": "gpu1", "at": NOON.isoformat(), "text": XID, "gpu": 3}
        found = node_events.parse(orjson.dumps({**plain, **changes}))
        assert isinstance(found, NodeReport)
        NodeEventIntake(self.store, self.clock, SETTINGS).take(found.events)

    def idle(self) -> int:
        self.tending()
        return self.revision.revise_by_new_evidence()

    def messages(self) -> list[str]:
        with self.store.unit_of_work() as work:
            return [message.type for message in work.outbox.lease("test", limit=500, seconds=0)]

    def failure(self, job: str = "1") -> FailureDetail:
        with self.store.reading() as reading:
            [attempt] = reading.jobs.attempts("orion", job)
            assert attempt.failure_id is not None
            return reading.failures.get(attempt.failure_id)


def ended(number: int = 1, **changes: Any) -> JobCompletion:
    plain: dict[str, Any] = {
        "cluster": "orion",
        "job_id": str(number),
        "status": "failed",
        "user": "ana",
        "nodes": ["gpu1", "gpu2"],
        "started_at": (NOON - timedelta(hours=1)).isoformat(),
        "ended_at": NOON.isoformat(),
    }
    return from_object({**plain, **changes})


def test_earlier_node_events_are_evidence_at_once(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.say()
    bench.diagnose([ended()])
    found = bench.failure()
    assert (found.row.side, found.row.cause, found.row.suspect_node) == ("hardware", "HW.GPU.2", "gpu1")
    assert found.verdict is not None
    assert found.verdict["context"][0]["text"] == XID
    assert found.verdict["log_said"]["abstained"] is True
    assert bench.idle() == 0
    assert bench.messages() == ["failure.diagnosed"]


def test_a_log_that_disagrees_with_a_node_is_disputed(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock, SURE)
    bench.say()
    bench.diagnose([ended()])
    verdict = bench.failure().verdict
    assert verdict is not None
    assert verdict["disputed"] is True
    assert (verdict["log_said"]["side"], verdict["context"][0]["side"]) == ("user", "hardware")


def test_a_later_node_event_revises_the_verdict_once(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    assert bench.idle() == 0
    assert bench.failure().row.version == 1
    clock.at = NOON + timedelta(minutes=4)
    bench.say(at=(NOON - timedelta(seconds=5)).isoformat())
    assert bench.idle() == 1
    found = bench.failure()
    assert (found.row.version, found.row.side, found.row.suspect_node) == (2, "hardware", "gpu1")
    assert found.versions[1].body is not None
    assert found.versions[1].body["abstained"] is True
    assert bench.messages() == ["failure.diagnosed", "failure.revised"]
    for _ in range(3):
        clock.at += timedelta(minutes=15)
        assert bench.idle() == 0
    assert bench.failure().row.version == 2
    with store.reading() as reading:
        assert not reading.node_work.any_due()


def test_new_evidence_does_not_replace_a_verdict_that_another_process_stores_meanwhile(
    open_store: Callable[[], Store], clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, other = Bench(open_store(), clock), open_store()
    bench.diagnose([ended()])
    bench.idle()
    clock.at = NOON + timedelta(minutes=4)
    bench.say(at=(NOON - timedelta(seconds=5)).isoformat())
    found = bench.failure()
    of_late_log = {**(found.verdict or {}), "cause": "USER.2", "side": "user", "abstained": False}

    def store_late_log() -> None:
        with other.unit_of_work() as work:
            work.failures.revise(found.row.id, of_late_log)

    thread = threading.Thread(target=store_late_log)

    def advised_meanwhile(*given: Any, **options: Any) -> dict[str, Any]:
        thread.start()
        thread.join(1)  # SQLite has one writer: there it comes afterwards
        return advised_wire(*given, **options)

    monkeypatch.setattr(revision, "advised_wire", advised_meanwhile)
    bench.idle()
    thread.join(30)
    assert bench.failure().row.cause == "USER.2"


def test_new_evidence_during_a_reassessment_is_considered_afterwards(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    bench.idle()
    clock.at = NOON + timedelta(hours=1)

    def evidence_then_update(verdict: Verdict, known: FleetEvidence) -> Verdict:
        bench.say(at=(NOON - timedelta(seconds=5)).isoformat())
        bench.tending()
        monkeypatch.undo()
        return update_verdict(verdict, known)

    monkeypatch.setattr(reassessment, "update_verdict", evidence_then_update)
    assert bench.idle() == 0
    assert bench.idle() == 1
    assert bench.failure().row.side == "hardware"
    assert bench.idle() == 0
    with store.reading() as reading:
        assert not reading.node_work.any_due()


def _unreadable_body(bench: Bench, _: pytest.MonkeyPatch) -> None:
    found = bench.failure("2")
    with bench.store.unit_of_work() as work:
        work.failures.revise(found.row.id, {**(found.verdict or {}), "context": "lost"})


def _failing_update(_: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(verdict: Verdict, known: FleetEvidence) -> Verdict:
        if known.user == "u2":
            raise ZeroDivisionError
        return update_verdict(verdict, known)

    monkeypatch.setattr(reassessment, "update_verdict", fails)


def _failing_advice(_: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(event: JobCompletion, *given: Any, **options: Any) -> dict[str, Any]:
        if event.user == "u2":
            raise ZeroDivisionError
        return advised_wire(event, *given, **options)

    monkeypatch.setattr(revision, "advised_wire", fails)


@pytest.mark.parametrize("spoil", [_unreadable_body, _failing_update, _failing_advice])
def test_a_failure_that_cannot_be_reassessed_delays_no_other_and_is_given_up(
    store: Store,
    clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[Bench, pytest.MonkeyPatch], None],
) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended(number, user=f"u{number}", nodes=["gpu1"]) for number in (1, 2, 3)])
    bench.idle()
    spoil(bench, monkeypatch)
    before = bench.failure("2").row
    clock.at = NOON + timedelta(minutes=4)
    bench.say(at=(NOON - timedelta(seconds=5)).isoformat())
    assert bench.idle() == 2
    assert [bench.failure(job).row.side for job in ("1", "3")] == ["hardware", "hardware"]
    assert bench.failure("2").row.version == before.version
    assert f"failure {before.id} " in caplog.text
    for _ in range(4):
        clock.at += timedelta(minutes=15)
        bench.idle()
    caplog.clear()
    clock.at += timedelta(minutes=15)
    assert bench.idle() == 0
    assert not caplog.records
    with store.reading() as reading:
        assert not reading.node_work.any_due()


def test_a_database_that_does_not_answer_gives_up_no_failure(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    bench.idle()
    clock.at = NOON + timedelta(minutes=4)
    bench.say(at=(NOON - timedelta(seconds=5)).isoformat())

    def away(*_: Any) -> list[FleetEvidence]:
        raise Unavailable("the database does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(reassessment, "read", away)
        with pytest.raises(Unavailable):
            bench.idle()
    clock.at += timedelta(minutes=3)
    assert bench.idle() == 1


@pytest.mark.parametrize(
    "node_event",
    [{"node": "gpu9"}, {"at": (NOON - timedelta(hours=5)).isoformat()}, {"cluster": "lyra"}, {"text": "hello"}],
)
def test_unrelated_node_events_change_nothing(store: Store, clock: FrozenClock, node_event: dict[str, str]) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    bench.say(**node_event)
    assert bench.idle() == 0
    clock.at += timedelta(hours=1)
    assert bench.idle() == 0
    assert bench.failure().row.version == 1


def test_related_failures_in_the_batch_and_later_are_evidence(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended(0, user="u0", nodes=["n0"])])
    assert bench.failure("0").row.side == "user"
    bench.diagnose([ended(number, user=f"u{number}", nodes=[f"n{number}"]) for number in range(1, 6)])
    assert {bench.failure(str(number)).row.side for number in range(1, 6)} == {"system"}
    assert bench.idle() == 0
    clock.at += REASSESSED_AFTER
    assert bench.idle() == 1
    assert (bench.failure("0").row.side, bench.failure("0").row.version) == ("system", 2)


def test_a_verdict_of_a_person_is_not_revised(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    found = bench.failure()
    assert found.verdict is not None
    with store.unit_of_work() as work:
        work.failures.revise(found.row.id, dict(found.verdict), source="person")
    bench.say()
    assert bench.idle() == 0
    assert bench.failure().row.source == "person"


def test_a_deleted_failure_is_skipped(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.diagnose([ended()])
    bench.tending()
    store.purge(rows_before=NOON + timedelta(days=1))
    clock.at += timedelta(days=2)
    assert bench.idle() == 0
    with store.reading() as reading:
        assert not reading.node_work.any_due()


def test_a_stored_verdict_is_read_back_as_it_was(store: Store, clock: FrozenClock) -> None:
    bench = Bench(store, clock)
    bench.say()
    bench.diagnose([ended()])
    body = bench.failure().verdict
    assert body is not None
    verdict = stored_verdict(body)
    assert verdict.context[0].at == NOON
    assert verdict.suspect is not None
    assert verdict.suspect.gpu == 3
    assert verdict.log_verdict is not None
    assert verdict.log_verdict.cause == OPEN.cause


@pytest.mark.parametrize("year", ["0001-01-01", "9999-12-31"])
def test_wrong_clocks_stop_nothing(store: Store, clock: FrozenClock, year: str) -> None:
    bench = Bench(store, clock)
    at = f"{year}T00:00:00Z"
    for kind in ("gpu_lost", "maintenance", "repaired"):
        bench.say(at=at, until=at, kind=kind)
        bench.say(at="0001-01-01T00:00:00Z", until="9999-12-31T23:59:59Z", kind=kind)
    bench.diagnose([ended(ended_at=at, started_at=at), ended(2, ended_at=at, started_at=None), ended(3)])
    for _ in range(3):
        bench.idle()
        clock.at += timedelta(hours=1)
    with store.reading() as reading:
        assert not reading.node_work.any()
        assert not reading.node_work.any_due()
        assert reading.suspicion.of("orion", ["gpu1"])["gpu1"].exposure_h <= 1
