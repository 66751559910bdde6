"""The suspicion of a node follows from its jobs and failures in any order, and a repair resets it."""

from collections.abc import Collection
from datetime import timedelta

import pytest

from service.db.session import Store
from service.formats import node_events
from service.nodes.counting import node_weights
from service.nodes.empirical_bayes import Prior, fit, ratio
from service.nodes.event_intake import NodeEventIntake
from service.nodes.records import CountedAttempt, FleetSettings, JudgedFailure, NewNodeEvent, NodeReport
from service.nodes.repository.failure_facts import FailureFactReader
from service.nodes.statistics_updater import NodeStatisticsUpdater
from tests.service.frozen_clock import FrozenClock
from tests.service.sample_rows import NOON, job, put, succeeded, verdict

HARDWARE = {"side": "hardware", "cause": "HW.GPU.1", "confidence": 0.9, "suspect": {"rank": 0, "node": "bad", "gpu": 1}}
SETTINGS = FleetSettings()
HOUR = timedelta(hours=1)


def tend(store: Store, clock: FrozenClock) -> int:
    return NodeStatisticsUpdater(store, clock, SETTINGS)()


def fleet_of(store: Store, bad: int = 3) -> None:
    """A cluster where each of ten nodes ran ten good hours, and one of them has `bad` hardware failures."""
    nodes = ("bad", *(f"good{number}" for number in range(9)))
    ends = [NOON - timedelta(hours=hour) for hour in range(10)]
    put(store, [succeeded(f"ok{n}", nodes=nodes, started_at=at - HOUR, ended_at=at) for n, at in enumerate(ends)])
    put(store, [job(f"f{number}", nodes=("bad", "good1")) for number in range(bad)], **HARDWARE)


def test_the_node_with_the_failures_is_suspected_and_the_others_are_not(store: Store, clock: FrozenClock) -> None:
    fleet_of(store)
    assert tend(store, clock) > 0
    with store.reading() as reading:
        found = reading.suspicion.of("orion", ["bad", "good1", "good2", "nobody knows"])
        page = reading.suspicion.page()
    assert set(found) == {"bad", "good1", "good2"}
    assert found["bad"].rate_ratio > 3
    assert found["good1"].rate_ratio < 1
    assert found["bad"].low < found["bad"].rate_ratio < found["bad"].high
    assert found["bad"].failures == pytest.approx(2.7)
    assert found["bad"].exposure_h == pytest.approx(13)
    assert found["good1"].failures == 0  # the suspect is named, so nothing is shared
    assert page.items[0].node == "bad"
    assert (page.items[0].jobs, page.items[0].failures) == (13, 3)
    assert page.items[0].last_failure_at == NOON


def test_counting_twice_or_in_pieces_gives_the_same(store: Store, clock: FrozenClock) -> None:
    fleet_of(store)
    tend(store, clock)
    with store.reading() as reading:
        once = reading.suspicion.page(sort="node").items
    assert tend(store, clock) == 0
    with store.reading() as reading:
        assert reading.suspicion.page(sort="node").items == once
    put(store, [job("f0", nodes=("bad", "good1"))], **HARDWARE)  # the same event again
    tend(store, clock)
    with store.reading() as reading:
        assert reading.suspicion.page(sort="node").items == once


def test_a_revised_verdict_subtracts_its_weights(store: Store, clock: FrozenClock) -> None:
    [outcome] = put(store, [job("f0", nodes=("bad", "good1"))], **HARDWARE)
    assert outcome.failure_id is not None
    tend(store, clock)
    with store.unit_of_work() as work:
        assert work.suspicion.of("orion", ["bad"])["bad"].failures == pytest.approx(0.9)
        work.failures.revise(outcome.failure_id, verdict(side="user", cause="USER.1"))
    tend(store, clock)
    with store.reading() as reading:
        assert reading.suspicion.of("orion", ["bad"])["bad"].failures == 0
        assert reading.failure_facts.weights([outcome.failure_id]) == {}


def test_old_failures_decay(store: Store, clock: FrozenClock) -> None:
    fleet_of(store)
    tend(store, clock)
    with store.reading() as reading:
        before = reading.suspicion.of("orion", ["bad"])["bad"]
    clock.at += SETTINGS.half_life
    tend(store, clock)
    with store.reading() as reading:
        after = reading.suspicion.of("orion", ["bad"])["bad"]
    assert after.failures == pytest.approx(before.failures / 2)
    assert after.exposure_h == pytest.approx(before.exposure_h / 2)
    assert after.low < before.low  # less is known of it


def test_a_repair_clears_the_node_and_later_failures_count_again(store: Store, clock: FrozenClock) -> None:
    fleet_of(store)
    tend(store, clock)
    intake = NodeEventIntake(store, clock, SETTINGS)
    clock.at = NOON + timedelta(hours=1)
    assert intake.repaired("orion", "bad", actor="ana", note="GPU replaced, TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ")
    with store.reading() as reading:
        row = reading.suspicion.get("orion", "bad")
        [event] = reading.node_events.page("orion", "bad").items
    assert row.blame == 0
    assert row.rate_ratio <= 1
    assert (row.repaired_at, row.repaired_by) == (clock.at, "ana")
    assert event.kind == "repaired"
    assert "ghp_" not in event.text + (row.repair_note or "")
    put(store, [job("before", nodes=("bad",), ended_at=NOON)], **HARDWARE)  # comes late, was before the repair
    put(store, [job("after", nodes=("bad",), ended_at=NOON + timedelta(hours=2))], **HARDWARE)
    clock.at = NOON + timedelta(hours=3)
    tend(store, clock)
    with store.reading() as reading:
        row = reading.suspicion.get("orion", "bad")
    assert row.blame == pytest.approx(0.9)
    assert row.exposure_h < 2
    assert not intake.repaired("orion", "bad", actor="bo", note=None, at=NOON)


def test_a_repair_reported_late_keeps_later_failures(store: Store, clock: FrozenClock) -> None:
    put(store, [job("f0", nodes=("bad",), ended_at=NOON - timedelta(hours=3))], **HARDWARE)
    put(store, [job("f1", nodes=("bad",), ended_at=NOON - timedelta(hours=1))], **HARDWARE)
    tend(store, clock)
    node_event = node_events.parse(
        b'{"cluster":"orion","node":"bad","at":"2026-11-20T10:00:00Z","kind":"repaired","text":"new PSU"}'
    )
    assert isinstance(node_event, NodeReport)
    NodeEventIntake(store, clock, SETTINGS).take(node_event.events)
    with store.reading() as reading:
        row = reading.suspicion.get("orion", "bad")
    assert row.blame == pytest.approx(0.9)
    assert row.repaired_at == NOON - timedelta(hours=2)


def judged(**changes: object) -> JudgedFailure:
    plain = {
        "id": 1,
        "cluster": "orion",
        "job_id": "7",
        "ended_at": NOON,
        "user": "ana",
        "side": "hardware",
        "cause": "HW.GPU.1",
        "confidence": 0.8,
        "abstained": False,
        "fingerprint": "f",
        "suspect_node": None,
        "nodes": ("n1", "n2", "n3", "n4"),
    }
    return JudgedFailure(**{**plain, **changes})  # type: ignore[arg-type] # written by hand


def test_a_failure_is_shared_unless_a_suspect_of_the_job_is_named() -> None:
    assert node_weights(judged()) == dict.fromkeys(("n1", "n2", "n3", "n4"), pytest.approx(0.2))
    assert node_weights(judged(suspect_node="N3.example.org")) == {"n3": pytest.approx(0.8)}
    assert node_weights(judged(suspect_node="elsewhere")) == node_weights(judged())
    assert node_weights(judged(side="user", cause="USER.1")) == {}
    assert node_weights(judged(cause="HW.NODE.3")) == {}
    assert sum(node_weights(judged(side="system", cause="SYS.1")).values()) < 0.8
    assert sum(node_weights(judged(abstained=True)).values()) == pytest.approx(0.4)


def test_nodes_with_little_data_are_near_the_fleet_rate() -> None:
    prior = Prior(rate=0.001, shape=1.0)
    assert ratio(0, 0, prior).mean == 1
    assert ratio(0, 0, prior).low < 1 < ratio(0, 0, prior).high
    few, many = ratio(1, 100, prior), ratio(100, 10_000, prior)
    assert few.mean < many.mean < 10
    assert many.high - many.low < few.high - few.low


def test_the_prior_is_fitted_to_the_fleet() -> None:
    alike = fit([(2.0, 1_000.0)] * 200)
    differ = fit([(0.0, 1_000.0)] * 190 + [(40.0, 1_000.0)] * 10)
    assert alike.rate == pytest.approx(0.002, rel=0.1)
    assert alike.shape > 5
    assert differ.shape < 1
    assert fit([]).rate == pytest.approx(Prior().rate)


def test_old_node_events_are_removed_however_many_come(store: Store, clock: FrozenClock) -> None:
    old = clock.now() - timedelta(days=100)
    with store.unit_of_work() as work:
        work.node_events.add(
            [NewNodeEvent(number.to_bytes(16, "big"), "orion", "n1", old, "xid", "a line") for number in range(1_600)]
        )
    NodeStatisticsUpdater(store, clock, SETTINGS)()
    with store.reading() as reading:
        assert reading.node_events.page("orion", "n1").items == ()


def test_a_node_with_a_very_long_name_is_counted_and_stops_no_others(store: Store, clock: FrozenClock) -> None:
    put(store, [job("f1", nodes=("x" * 500,))], **HARDWARE)
    put(store, [job("f2", nodes=("gpu1",))], **HARDWARE)
    tend(store, clock)
    with store.reading() as reading:
        assert {row.node: row.jobs for row in reading.suspicion.page().items} == {"x" * 200: 1, "gpu1": 1}


def test_one_job_that_cannot_be_counted_stops_no_others(
    store: Store, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [succeeded(f"ok{n}", nodes=(f"gpu{n}",)) for n in range(5)]
    outcomes = put(store, [*good, succeeded("odd", nodes=("odd",))])
    odd = outcomes[-1].id
    original = FailureFactReader.ran

    def ran(reader: FailureFactReader, ids: Collection[int]) -> list[CountedAttempt]:
        if odd in ids:
            raise ValueError("nobody expected this")
        return original(reader, ids)

    monkeypatch.setattr(FailureFactReader, "ran", ran)
    tend(store, clock)
    with store.reading() as reading:
        assert {row.node for row in reading.suspicion.page().items} == {f"gpu{n}" for n in range(5)}
        assert not reading.node_work.any()
