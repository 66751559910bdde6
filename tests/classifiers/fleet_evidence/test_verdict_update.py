"""Node events and related failures change a verdict as far as they should, and nothing else does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import Evidence, Suspect, Verdict
from classifiers.fleet_evidence import evidence_weights
from classifiers.fleet_evidence.records import FleetEvidence, FleetNodeEvent, RelatedFailure
from classifiers.fleet_evidence.stored_node_events import weight
from classifiers.fleet_evidence.verdict_update import log_only, update_verdict

END = datetime(2026, 11, 20, 12, tzinfo=UTC)
NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=12, GPU has fallen off the bus."
TRACEBACK = Evidence("ValueError: batch size must be positive", "initiating", rank=0, node="gpu1", line=7)
WATCHDOG = Evidence("Watchdog caught collective operation timeout", "cascade", rank=0, node="gpu1", line=9)
USER = Verdict(
    side="user",
    cause="USER.1",
    cause_top=("USER.1", "USER.4"),
    category="GC.1",
    symptom=None,
    symptom_top=(),
    platform_symptom="crash",
    confidence=0.9,
    abstained=False,
    retry_outlook="futile",
    fingerprint="1:abc",
    explanation="The job's own code made it fail.",
    model="m",
    rules="r",
    evidence=(TRACEBACK,),
)
NCCL = replace(
    USER,
    side="hardware",
    cause="HW.NET.1",
    cause_top=("HW.NET.1", "USER.1"),
    category=None,
    retry_outlook="helps_elsewhere",
    explanation="An InfiniBand link went down.",
    evidence=(WATCHDOG,),
    confidence=0.8,
)
OPEN = replace(NCCL, confidence=0.4, abstained=True)


def event(kind: str = "gpu_lost", seconds: float = -60, node: str = "gpu2", **changes: Any) -> FleetNodeEvent:
    plain = FleetNodeEvent(
        node=node, at=END + timedelta(seconds=seconds), kind=kind, text=XID if kind == "gpu_lost" else kind
    )
    return replace(plain, **changes)


def evidence(
    *events: FleetNodeEvent, others: tuple[RelatedFailure, ...] = (), nodes: tuple[str, ...] = NODES
) -> FleetEvidence:
    return FleetEvidence(END, nodes, "ana", events, others)


def other(number: int, seconds: float = -60, **changes: Any) -> RelatedFailure:
    plain = RelatedFailure(
        job=f"orion/{number}",
        at=END + timedelta(seconds=seconds),
        nodes=(f"far{number}",),
        user=f"user{number}",
        fingerprint="1:abc",
        side="system",
        cause="SYS.5",
    )
    return replace(plain, **changes)


def test_a_node_that_lost_its_gpu_decides_an_undecided_time_out() -> None:
    updated = update_verdict(OPEN, evidence(event(gpu=3)))
    assert (updated.side, updated.cause, updated.abstained, updated.disputed) == ("hardware", "HW.GPU.2", False, False)
    assert updated.suspect == Suspect(rank=None, node="gpu2", gpu=3)
    assert updated.retry_outlook == "helps_elsewhere"
    assert updated.confidence > 0.9
    assert "gpu2" in updated.explanation
    assert updated.log_verdict is not None
    assert updated.log_verdict.abstained


def test_a_traceback_and_an_xid_are_disputed_and_both_are_shown() -> None:
    updated = update_verdict(USER, evidence(event()))
    assert updated.disputed
    assert updated.log_verdict is not None
    assert (updated.log_verdict.side, updated.log_verdict.confidence) == ("user", 0.9)
    assert [line.side for line in updated.context] == ["hardware"]
    assert updated.context[0].text == XID
    assert "disagree" in updated.explanation
    assert USER.explanation in updated.explanation


def test_a_time_out_of_hardware_on_healthy_nodes_is_disputed() -> None:
    checked = [event("healthy", 120, node) for node in NODES]
    updated = update_verdict(NCCL, evidence(*checked))
    assert updated.disputed
    assert updated.confidence < NCCL.confidence
    assert not update_verdict(NCCL, evidence(*checked[1:])).disputed  # one node is unknown
    seen = replace(NCCL, evidence=(Evidence(XID, "initiating", node="gpu1", stream="node"),))
    assert not update_verdict(seen, evidence(*checked)).disputed  # it failed: being healthy now is weak evidence


def test_healthy_nodes_are_no_evidence_when_one_node_is_faulty() -> None:
    checked = [event("healthy", 120, node) for node in NODES]
    updated = update_verdict(NCCL, evidence(*checked, event()))
    assert not updated.disputed
    assert [line.kind for line in updated.context] == ["gpu_lost"]


def test_a_time_out_without_a_beginning_follows_the_nodes_without_dispute() -> None:
    blamed = replace(USER, evidence=(WATCHDOG,))
    updated = update_verdict(blamed, evidence(event()))
    assert (updated.side, updated.disputed) == ("hardware", False)


def test_a_shared_outage_moves_failures_of_many_users_to_the_system() -> None:
    others = tuple(other(number) for number in range(5))
    updated = update_verdict(OPEN, evidence(others=others))
    assert (updated.side, updated.cause, updated.abstained) == ("system", "SYS.5", False)
    assert "5 other users" in updated.context[0].text
    usual = replace(evidence(others=others), usual_per_hour=5.0)
    assert update_verdict(OPEN, usual).side != "system"  # as many fail at any other time
    same_user = tuple(replace(one, user="ana", nodes=()) for one in others)
    assert update_verdict(OPEN, evidence(others=same_user)) == OPEN


def test_a_failure_that_follows_its_user_across_nodes_is_of_the_program() -> None:
    others = tuple(other(number, user="ana") for number in range(4))
    updated = update_verdict(OPEN, evidence(others=others))
    assert updated.side == "user"
    assert updated.retry_outlook == "futile"


def test_a_node_with_other_failures_is_the_suspect_of_a_small_job_and_not_of_a_huge_one() -> None:
    others = tuple(
        other(number, -3_600, fingerprint=f"1:{number}", side="hardware", cause="HW.GPU.1", suspect_node="gpu4")
        for number in range(3)
    )
    updated = update_verdict(OPEN, evidence(others=others))
    assert updated.side == "hardware"
    assert updated.suspect is not None
    assert updated.suspect.node == "gpu4"
    huge = (*(f"n{number}" for number in range(4_000)), "gpu4")
    assert update_verdict(OPEN, evidence(others=others, nodes=huge)) == OPEN


@pytest.mark.parametrize("node", ["gpu2", "gpu4"])
def test_of_nodes_with_equal_evidence_the_one_that_the_log_names_is_the_suspect(node: str) -> None:
    others = tuple(
        other(number, -3_600, fingerprint=f"1:{number}", side="hardware", cause="HW.NET.1", suspect_node=where)
        for number, where in enumerate(("gpu2", "gpu4"))
    )
    log = replace(OPEN, side="hardware", cause="HW.NET.1", abstained=False, suspect=Suspect(rank=0, node=node, gpu=3))
    updated = update_verdict(log, evidence(others=others))
    assert len(updated.context) == 2
    assert updated.suspect == log.suspect


def test_failures_of_other_jobs_displace_no_node_whose_own_event_is_the_beginning() -> None:
    others = tuple(
        other(number, -3_600, fingerprint=f"1:{number}", side="hardware", cause="HW.NET.1", suspect_node="gpu4")
        for number in range(3)
    )
    began = Evidence(XID, "initiating", node="gpu2", stream="node")
    log = replace(OPEN, cause="HW.GPU.2", abstained=False, suspect=Suspect(node="gpu2", gpu=3), evidence=(began,))
    assert update_verdict(log, evidence(others=others)).suspect == log.suspect
    without = replace(log, evidence=(WATCHDOG,))
    assert update_verdict(without, evidence(others=others)).suspect == Suspect(node="gpu4")


def test_a_rarer_event_weighs_more() -> None:
    kind = evidence_weights.load().kinds["link_degraded"]
    weights = [weight(kind, nodes) for nodes in (1, 16, 256, 4_096)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == 0.0


def test_maintenance_counts_until_its_window_ends() -> None:
    window = event("maintenance", -7_200, until=END + timedelta(hours=1))
    updated = update_verdict(OPEN, evidence(*(replace(window, node=node) for node in NODES)))
    assert (updated.side, updated.cause) == ("system", "SYS.3")
    over = replace(window, until=END - timedelta(hours=1))
    assert update_verdict(OPEN, evidence(over)) == OPEN


def test_a_line_that_the_classifier_read_counts_once() -> None:
    read = replace(NCCL, evidence=(Evidence(XID, "initiating", node="gpu2", stream="node"),))
    assert update_verdict(read, evidence(event())) == read


def test_short_and_long_node_names_are_the_same_node() -> None:
    updated = update_verdict(OPEN, evidence(event(node="GPU2.cluster.example.org")))
    assert updated.suspect is not None
    assert updated.suspect.node == "gpu2"


@pytest.mark.parametrize("kind", ["repaired", "other", "no such kind"])
def test_an_event_that_is_no_evidence_changes_nothing(kind: str) -> None:
    assert update_verdict(USER, evidence(event(kind))) == USER


KINDS = sorted(evidence_weights.load().kinds)
verdicts = st.builds(
    lambda base, sure, open_: replace(base, confidence=sure, abstained=open_),
    st.sampled_from([USER, NCCL, OPEN]),
    st.floats(0, 1),
    st.booleans(),
)
events = st.builds(
    event,
    st.sampled_from(KINDS),
    st.integers(-5_000, 5_000),
    st.sampled_from([*NODES, "elsewhere"]),
    gpu=st.none() | st.integers(0, 7),
    resolved=st.booleans(),
)
others_near = st.builds(
    lambda number, seconds, user, side, node, alike: other(
        number,
        seconds,
        user=user,
        side=side,
        cause={"hardware": "HW.GPU.1", "system": "SYS.5", "user": "USER.1"}[side],
        nodes=(node,),
        fingerprint="1:abc" if alike else "1:other",
    ),
    st.integers(0, 9),
    st.integers(-100_000, 100_000),
    st.sampled_from(["ana", "bo", "cy", None]),
    st.sampled_from(["hardware", "system", "user"]),
    st.sampled_from([*NODES, "elsewhere"]),
    st.booleans(),
)


@given(verdicts)
def test_no_evidence_changes_nothing(verdict: Verdict) -> None:
    assert update_verdict(verdict, FleetEvidence(END)) == verdict
    assert update_verdict(verdict, evidence()) == verdict


@given(verdicts, st.lists(events, max_size=12), st.lists(others_near, max_size=12), st.randoms())
def test_the_order_of_the_evidence_does_not_matter(
    verdict: Verdict, observed: list[FleetNodeEvent], others: list[RelatedFailure], random: Any
) -> None:
    once = update_verdict(verdict, evidence(*observed, others=tuple(others)))
    random.shuffle(observed)
    random.shuffle(others)
    assert update_verdict(verdict, evidence(*observed, others=tuple(others))) == once


@given(verdicts, st.lists(events, max_size=12), st.lists(others_near, max_size=12))
def test_an_updated_verdict_can_be_updated_again(
    verdict: Verdict, observed: list[FleetNodeEvent], others: list[RelatedFailure]
) -> None:
    known = evidence(*observed, others=tuple(others))
    updated = update_verdict(verdict, known)
    assert update_verdict(updated, known) == updated
    assert log_only(updated) == log_only(verdict)
    assert update_verdict(updated, evidence()) == verdict


@given(verdicts, st.lists(events, max_size=12))
def test_events_of_other_nodes_or_outside_the_window_change_nothing(
    verdict: Verdict, observed: list[FleetNodeEvent]
) -> None:
    assert update_verdict(verdict, evidence(*(replace(one, node="elsewhere") for one in observed))) == verdict
    data = evidence_weights.load()
    late = [replace(one, at=END + timedelta(seconds=data.after_s + 1)) for one in observed]
    early = [replace(one, at=END - timedelta(seconds=data.before_s + 1)) for one in observed]
    assert update_verdict(verdict, evidence(*late, *early)) == verdict


@given(verdicts, st.lists(events, max_size=12), st.lists(others_near, max_size=12))
def test_the_updated_verdict_is_consistent(
    verdict: Verdict, observed: list[FleetNodeEvent], others: list[RelatedFailure]
) -> None:
    updated = update_verdict(verdict, evidence(*observed, others=tuple(others)))
    assert 0 <= updated.confidence <= 1
    assert updated.cause == updated.cause_top[0]
    assert updated.cause.startswith({"hardware": "HW.", "system": "SYS.", "user": "USER."}[updated.side])
    assert len(updated.cause_top) <= 3
    if updated.disputed:
        assert updated.log_verdict is not None
        assert not updated.log_verdict.abstained
        assert any(line.kind in data_kinds() for line in updated.context)


def data_kinds() -> frozenset[str]:
    return frozenset(evidence_weights.load().kinds)
