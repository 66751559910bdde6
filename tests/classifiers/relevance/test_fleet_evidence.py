"""What nodes and neighbours said moves a verdict as far as it should, and nothing else moves it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.contracts import Evidence, Suspect, Verdict
from classifiers.relevance import evidence_weights
from classifiers.relevance.fleet_evidence import FleetEvidence, NodeSign, as_logged, update, weight
from classifiers.relevance.related_failures import OtherFailure

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


def sign(kind: str = "gpu_lost", seconds: float = -60, node: str = "gpu2", **changes: Any) -> NodeSign:
    plain = NodeSign(
        node=node, at=END + timedelta(seconds=seconds), kind=kind, text=XID if kind == "gpu_lost" else kind
    )
    return replace(plain, **changes)


def evidence(*signs: NodeSign, others: tuple[OtherFailure, ...] = (), nodes: tuple[str, ...] = NODES) -> FleetEvidence:
    return FleetEvidence(END, nodes, "ana", signs, others)


def other(number: int, seconds: float = -60, **changes: Any) -> OtherFailure:
    plain = OtherFailure(
        job=f"orion/{number}",
        at=END + timedelta(seconds=seconds),
        nodes=(f"far{number}",),
        user=f"user{number}",
        fingerprint="1:abc",
        side="system",
        cause="SYS.5",
    )
    return replace(plain, **changes)


def test_an_undecided_time_out_is_decided_by_the_node_that_lost_its_gpu() -> None:
    told = update(OPEN, evidence(sign(gpu=3)))
    assert (told.side, told.cause, told.abstained, told.disputed) == ("hardware", "HW.GPU.2", False, False)
    assert told.suspect == Suspect(rank=None, node="gpu2", gpu=3)
    assert told.retry_outlook == "helps_elsewhere"
    assert told.confidence > 0.9
    assert "gpu2" in told.explanation
    assert told.log_said is not None
    assert told.log_said.abstained


def test_a_traceback_against_an_xid_is_disputed_and_both_sides_stand_in_it() -> None:
    told = update(USER, evidence(sign()))
    assert told.disputed
    assert told.log_said is not None
    assert (told.log_said.side, told.log_said.confidence) == ("user", 0.9)
    assert [line.side for line in told.context] == ["hardware"]
    assert told.context[0].text == XID
    assert "disagree" in told.explanation
    assert USER.explanation in told.explanation


def test_hardware_blamed_for_a_time_out_where_every_node_is_healthy_is_disputed() -> None:
    checked = [sign("healthy", 120, node) for node in NODES]
    told = update(NCCL, evidence(*checked))
    assert told.disputed
    assert told.confidence < NCCL.confidence
    assert not update(NCCL, evidence(*checked[1:])).disputed  # of one node nothing is known
    seen = replace(NCCL, evidence=(Evidence(XID, "initiating", node="gpu1", stream="node"),))
    assert not update(seen, evidence(*checked)).disputed  # it did fail; that it is well again says little


def test_healthy_nodes_say_nothing_where_one_of_them_is_ill() -> None:
    checked = [sign("healthy", 120, node) for node in NODES]
    told = update(NCCL, evidence(*checked, sign()))
    assert not told.disputed
    assert [line.kind for line in told.context] == ["gpu_lost"]


def test_a_time_out_without_a_beginning_of_its_own_follows_the_nodes_without_dispute() -> None:
    blamed = replace(USER, evidence=(WATCHDOG,))
    told = update(blamed, evidence(sign()))
    assert (told.side, told.disputed) == ("hardware", False)


def test_one_shared_outage_moves_many_users_failures_to_the_system() -> None:
    others = tuple(other(number) for number in range(5))
    told = update(OPEN, evidence(others=others))
    assert (told.side, told.cause, told.abstained) == ("system", "SYS.5", False)
    assert "5 other users" in told.context[0].text
    usual = replace(evidence(others=others), usual_per_hour=5.0)
    assert update(OPEN, usual).side != "system"  # as many come at any other time
    same_user = tuple(replace(one, user="ana", nodes=()) for one in others)
    assert update(OPEN, evidence(others=same_user)) == OPEN


def test_a_failure_that_follows_its_owner_from_node_to_node_is_the_program_s() -> None:
    others = tuple(other(number, user="ana") for number in range(4))
    told = update(OPEN, evidence(others=others))
    assert told.side == "user"
    assert told.retry_outlook == "futile"


def test_a_node_on_which_others_failed_becomes_the_suspect_of_a_small_job_not_of_a_huge_one() -> None:
    others = tuple(
        other(number, -3_600, fingerprint=f"1:{number}", side="hardware", cause="HW.GPU.1", suspect_node="gpu4")
        for number in range(3)
    )
    told = update(OPEN, evidence(others=others))
    assert told.side == "hardware"
    assert told.suspect is not None
    assert told.suspect.node == "gpu4"
    huge = (*(f"n{number}" for number in range(4_000)), "gpu4")
    assert update(OPEN, evidence(others=others, nodes=huge)) == OPEN


def test_the_rarer_a_sign_is_on_as_many_nodes_the_more_it_weighs() -> None:
    kind = evidence_weights.load().kinds["link_degraded"]
    weights = [weight(kind, nodes) for nodes in (1, 16, 256, 4_096)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] == 0.0


def test_maintenance_counts_as_long_as_its_window_lasts() -> None:
    window = sign("maintenance", -7_200, until=END + timedelta(hours=1))
    told = update(OPEN, evidence(*(replace(window, node=node) for node in NODES)))
    assert (told.side, told.cause) == ("system", "SYS.3")
    over = replace(window, until=END - timedelta(hours=1))
    assert update(OPEN, evidence(over)) == OPEN


def test_a_line_that_the_classifier_read_itself_counts_once() -> None:
    read = replace(NCCL, evidence=(Evidence(XID, "initiating", node="gpu2", stream="node"),))
    assert update(read, evidence(sign())) == read


def test_a_node_is_the_same_by_its_short_and_its_long_name() -> None:
    told = update(OPEN, evidence(sign(node="GPU2.cluster.example.org")))
    assert told.suspect is not None
    assert told.suspect.node == "gpu2"


@pytest.mark.parametrize("kind", ["repaired", "other", "no such kind"])
def test_what_says_nothing_of_a_failure_changes_nothing(kind: str) -> None:
    assert update(USER, evidence(sign(kind))) == USER


KINDS = sorted(evidence_weights.load().kinds)
verdicts = st.builds(
    lambda base, sure, open_: replace(base, confidence=sure, abstained=open_),
    st.sampled_from([USER, NCCL, OPEN]),
    st.floats(0, 1),
    st.booleans(),
)
signs = st.builds(
    sign,
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
    assert update(verdict, FleetEvidence(END)) == verdict
    assert update(verdict, evidence()) == verdict


@given(verdicts, st.lists(signs, max_size=12), st.lists(others_near, max_size=12), st.randoms())
def test_the_order_of_the_evidence_does_not_matter(
    verdict: Verdict, said: list[NodeSign], others: list[OtherFailure], random: Any
) -> None:
    once = update(verdict, evidence(*said, others=tuple(others)))
    random.shuffle(said)
    random.shuffle(others)
    assert update(verdict, evidence(*said, others=tuple(others))) == once


@given(verdicts, st.lists(signs, max_size=12), st.lists(others_near, max_size=12))
def test_an_updated_verdict_can_be_updated_again(
    verdict: Verdict, said: list[NodeSign], others: list[OtherFailure]
) -> None:
    known = evidence(*said, others=tuple(others))
    told = update(verdict, known)
    assert update(told, known) == told
    assert as_logged(told) == as_logged(verdict)
    assert update(told, evidence()) == verdict


@given(verdicts, st.lists(signs, max_size=12))
def test_signs_of_other_nodes_or_outside_the_window_change_nothing(verdict: Verdict, said: list[NodeSign]) -> None:
    assert update(verdict, evidence(*(replace(one, node="elsewhere") for one in said))) == verdict
    data = evidence_weights.load()
    late = [replace(one, at=END + timedelta(seconds=data.after_s + 1)) for one in said]
    early = [replace(one, at=END - timedelta(seconds=data.before_s + 1)) for one in said]
    assert update(verdict, evidence(*late, *early)) == verdict


@given(verdicts, st.lists(signs, max_size=12), st.lists(others_near, max_size=12))
def test_what_comes_out_is_a_verdict(verdict: Verdict, said: list[NodeSign], others: list[OtherFailure]) -> None:
    told = update(verdict, evidence(*said, others=tuple(others)))
    assert 0 <= told.confidence <= 1
    assert told.cause == told.cause_top[0]
    assert told.cause.startswith({"hardware": "HW.", "system": "SYS.", "user": "USER."}[told.side])
    assert len(told.cause_top) <= 3
    if told.disputed:
        assert told.log_said is not None
        assert not told.log_said.abstained
        assert any(line.kind in data_kinds() for line in told.context)


def data_kinds() -> frozenset[str]:
    return frozenset(evidence_weights.load().kinds)
